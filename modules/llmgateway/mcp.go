package llmgateway

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	"golang.org/x/net/http/httpguts"

	"github.com/weirhq/weir/modules/llmgateway/mcpclient"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

const (
	// maxRounds bounds how often the model of one call gets results of MCP tools. In the last
	// round the model may call no tool.
	maxRounds = 32
	// maxMCPCalls bounds the calls of MCP tools in one call, if the client does not by
	// max_tool_calls.
	maxMCPCalls = 128
	// parallelMCPCalls bounds how many of them run at once.
	parallelMCPCalls = 8
	// mcpTimeout bounds how long the list of a server's tools may take, and each call.
	mcpTimeout = 60 * time.Second
)

// checkMCPServers returns an error unless each text is the URL of a server.
func checkMCPServers(servers []string) error {
	for _, server := range servers {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("mcp %s: want the URL of an MCP server, like https://example.com/mcp", server)
		}
	}
	return nil
}

// allowsMCP reports whether the gateway may call the MCP server that a tool names.
func (h *Handler) allowsMCP(tool gjson.Result) bool {
	server := strings.TrimSuffix(tool.Get("server_url").Str, "/")
	return tool.Get("type").Str == "mcp" && slices.ContainsFunc(h.MCP, func(allowed string) bool {
		return server == strings.TrimSuffix(allowed, "/")
	})
}

// callsMCP reports whether the gateway has to call MCP servers for a target of an API.
func (c *call) callsMCP(api translate.Provider, parsed *translate.Request) bool {
	if len(c.h.MCP) == 0 || c.dialect != plugins.Responses || c.compacts {
		return false
	}
	if caller, ok := api.(translate.MCPCaller); ok && caller.CallsMCP(parsed) {
		return false
	}
	return slices.ContainsFunc(parsed.Tools, func(t translate.Tool) bool { return c.h.allowsMCP(gjson.ParseBytes(t.Raw)) })
}

// mcpTools are the MCP servers that the gateway calls for one call.
type mcpTools struct {
	call      *call
	sessions  map[string]*mcpclient.Session // by server_label
	functions map[string][]translate.Tool   // the tools of each server, by server_label
	items     []json.RawMessage             // the first items of the response
	left      int64                         // how many calls may still be made
	parsed    func() (*translate.Request, error)
}

// mcpRequest is the client's request with the tools of MCP servers as functions.
func (c *call) mcpRequest() (*translate.Request, error) {
	if c.mcp == nil {
		c.mcp = &mcpTools{call: c, sessions: make(map[string]*mcpclient.Session), functions: make(map[string][]translate.Tool)}
		c.mcp.parsed = sync.OnceValues(c.mcp.parse)
	}
	return c.mcp.parsed()
}

func (m *mcpTools) close() {
	for _, s := range m.sessions {
		s.Close()
	}
}

// parse lists the tools of the servers, makes the calls that the client has approved, and
// reads the request.
func (m *mcpTools) parse() (*translate.Request, error) {
	body := m.call.sent
	input := gjson.GetBytes(body, "input").Array()
	var servers []*mcpServer
	for i, tool := range gjson.GetBytes(body, "tools").Array() {
		if !m.call.h.allowsMCP(tool) {
			continue
		}
		s, err := newMCPServer(fmt.Sprintf("tools[%d]", i), tool, input)
		if err != nil {
			return nil, err
		}
		if m.sessions[s.label] != nil {
			return nil, plugins.Invalid(s.param+".server_label", "Duplicate server_label '%s': every MCP server needs its own.", s.label)
		}
		m.sessions[s.label] = s.session
		servers = append(servers, s)
	}
	var wg sync.WaitGroup
	for _, s := range servers {
		if s.listed == nil {
			wg.Go(func() { s.list(m.call) })
		}
	}
	wg.Wait()
	for _, s := range servers {
		if s.item != nil {
			m.items = append(m.items, s.item)
		}
		m.functions[s.label] = s.functions()
	}
	m.left = maxMCPCalls
	if most := gjson.GetBytes(body, "max_tool_calls"); most.Type == gjson.Number {
		m.left = min(m.left, most.Int())
	}
	body, err := m.resume(body, input)
	if err != nil {
		return nil, err
	}
	return translate.ParseMCP(body, m.functions)
}

// mcpServer is a tool `mcp` of a request.
type mcpServer struct {
	param, label string
	tool         gjson.Result
	session      *mcpclient.Session
	listed       []mcpclient.Tool // the tools of the server, nil until they are known
	item         json.RawMessage  // mcp_list_tools, nil if the conversation has one
}

func newMCPServer(param string, tool gjson.Result, input []gjson.Result) (*mcpServer, error) {
	s := &mcpServer{param: param, label: tool.Get("server_label").Str, tool: tool}
	if s.label == "" {
		return nil, translate.Missing(param + ".server_label")
	}
	header := make(http.Header)
	headers := tool.Get("headers")
	if headers.Type != gjson.Null && !headers.IsObject() {
		return nil, plugins.Invalid(param+".headers", "Invalid '%s.headers': an object is expected.", param)
	}
	for name, value := range headers.Map() {
		if value.Type != gjson.String || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value.Str) {
			return nil, plugins.Invalid(param+".headers", "Invalid '%s.headers': an object with the names and values of HTTP headers is expected.", param)
		}
		header.Set(name, value.Str)
	}
	if token := tool.Get("authorization").Str; token != "" {
		if !httpguts.ValidHeaderFieldValue(token) {
			return nil, plugins.Invalid(param+".authorization", "Invalid '%s.authorization': an OAuth access token is expected.", param)
		}
		header.Set("Authorization", "Bearer "+token)
	}
	s.session = mcpclient.Open(mcpclient.Server{URL: tool.Get("server_url").Str, Header: header, Timeout: mcpTimeout})
	for _, item := range input {
		if item.Get("type").Str == "mcp_list_tools" && item.Get("server_label").Str == s.label && item.Get("error").Type == gjson.Null {
			s.listed = []mcpclient.Tool{}
			for _, t := range item.Get("tools").Array() {
				s.listed = append(s.listed, mcpclient.Tool{
					Name: t.Get("name").Str, Description: t.Get("description").Str,
					Schema: json.RawMessage(t.Get("input_schema").Raw), ReadOnly: t.Get("annotations.read_only").Bool(),
				})
			}
		}
	}
	return s, nil
}

// list asks the server for its tools. A server that fails has no tools.
func (s *mcpServer) list(c *call) {
	tools, err := s.session.Tools(c.ctx, c.h.MaxTools)
	type annotations struct {
		ReadOnly bool `json:"read_only"`
	}
	type tool struct {
		Annotations annotations     `json:"annotations"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
		Name        string          `json:"name"`
	}
	listed := []tool{}
	allowed := s.tool.Get("allowed_tools")
	for _, t := range tools {
		if allowed.Type == gjson.Null || matchesTools(allowed, t) {
			s.listed = append(s.listed, t)
			listed = append(listed, tool{annotations{t.ReadOnly}, t.Description, t.Schema, t.Name})
		}
	}
	item := map[string]any{"type": "mcp_list_tools", "server_label": s.label, "tools": listed, "error": nil}
	if err != nil {
		item["error"] = err.Error()
	}
	s.item, _ = translate.Encode(item) // of strings and valid JSON
}

// functions are the tools that the model is offered.
func (s *mcpServer) functions() []translate.Tool {
	tools := []translate.Tool{}
	allowed := s.tool.Get("allowed_tools")
	for _, t := range s.listed {
		if allowed.Type != gjson.Null && !matchesTools(allowed, t) { // the list may be of an earlier response
			continue
		}
		tools = append(tools, translate.Tool{
			Description: t.Description, Parameters: t.Schema,
			MCP: &translate.MCPTool{Server: s.label, Name: t.Name, NeedsApproval: s.needsApproval(t)},
		})
	}
	return tools
}

// needsApproval reports whether the client has to approve the calls of a tool. The client has
// to, unless the request says otherwise.
func (s *mcpServer) needsApproval(t mcpclient.Tool) bool {
	asked := s.tool.Get("require_approval")
	if !asked.IsObject() {
		return asked.Str != "never"
	}
	never, always := asked.Get("never"), asked.Get("always")
	switch {
	case always.Exists() && matchesTools(always, t):
		return true
	case never.Exists() && matchesTools(never, t):
		return false
	}
	return never.Exists() || !always.Exists()
}

// matchesTools reports whether a filter has a tool. The filter is a list of names, or an object
// with names and with whether the tools only read.
func matchesTools(filter gjson.Result, t mcpclient.Tool) bool {
	names, readOnly := filter, filter.Get("read_only")
	if filter.IsObject() {
		names = filter.Get("tool_names")
	}
	if readOnly.IsBool() && readOnly.Bool() != t.ReadOnly {
		return false
	}
	return !names.IsArray() || slices.ContainsFunc(names.Array(), func(name gjson.Result) bool { return name.Str == t.Name })
}

// resume makes the calls that the client approves, and puts them in the place of the
// approvals. A call that the client does not approve has failed.
func (m *mcpTools) resume(body []byte, input []gjson.Result) ([]byte, error) {
	asked, answered := make(map[string]gjson.Result), make(map[string]bool)
	for _, item := range input {
		switch item.Get("type").Str {
		case "mcp_approval_request":
			asked[item.Get("id").Str] = item
		case "mcp_call":
			answered[item.Get("approval_request_id").Str] = true
		}
	}
	var calls []*mcpCall
	byIndex := make(map[int]*mcpCall)
	for i, item := range input {
		id := item.Get("approval_request_id").Str
		if item.Get("type").Str != "mcp_approval_response" || answered[id] {
			continue
		}
		request, ok := asked[id]
		if !ok {
			return nil, plugins.Invalid(fmt.Sprintf("input[%d].approval_request_id", i), "No approval request found with the id '%.128s'.", id)
		}
		if m.sessions[request.Get("server_label").Str] == nil {
			continue // the provider left it to the client, or another one did
		}
		c := &mcpCall{
			server: request.Get("server_label").Str, tool: request.Get("name").Str, arguments: request.Get("arguments").Str, approval: id,
		}
		byIndex[i] = c
		if item.Get("approve").Bool() {
			calls = append(calls, c)
		} else {
			c.failure = strings.TrimSpace("The user did not approve this call. " + item.Get("reason").Str)
		}
	}
	if len(byIndex) == 0 {
		return body, nil
	}
	done := m.start(calls)
	for range calls {
		<-done
	}
	for _, c := range calls {
		m.items = append(m.items, c.item())
	}
	return editArray(body, "input", func(i int, item gjson.Result) string {
		c := byIndex[i]
		if c == nil {
			return item.Raw
		}
		made, _ := sjson.SetBytes(c.item(), "id", "mcp_"+c.approval) // of an object
		return string(made)
	}), nil
}

// mcpCall is a call of a tool.
type mcpCall struct {
	server, tool, arguments string
	approval                string // the id of the request that the client has approved, or not
	output, failure         string
}

// item is the call as the Responses API has it, without an id.
func (c *mcpCall) item() []byte {
	item := map[string]any{
		"type": "mcp_call", "server_label": c.server, "name": c.tool, "arguments": c.arguments,
		"approval_request_id": c.approval, "status": "completed", "output": c.output, "error": nil,
	}
	if c.failure != "" {
		item["status"], item["output"], item["error"] = "failed", nil, c.failure
	}
	b, _ := translate.Encode(item) // of strings
	return b
}

// start makes calls, some of them at once. The channel gets each call when it has a result.
func (m *mcpTools) start(calls []*mcpCall) <-chan *mcpCall {
	done := make(chan *mcpCall, len(calls))
	running := make(chan struct{}, parallelMCPCalls)
	for _, c := range calls {
		if m.left--; m.left < 0 {
			c.failure = "The call was not made: the response has no more calls of tools."
			done <- c
			continue
		}
		go func() {
			running <- struct{}{}
			defer func() { <-running }()
			m.make(c)
			done <- c
		}()
	}
	return done
}

// make makes a call.
func (m *mcpTools) make(c *mcpCall) {
	offered := slices.ContainsFunc(m.functions[c.server], func(t translate.Tool) bool { return t.MCP.Name == c.tool })
	arguments := cmp.Or(c.arguments, "{}")
	switch {
	case !offered:
		c.failure = "The MCP server has no such tool, or the request does not allow it."
	case !gjson.Valid(arguments) || !gjson.Parse(arguments).IsObject():
		c.failure = "The arguments of the call are not a JSON object."
	default:
		var err error
		if c.output, err = m.sessions[c.server].Call(m.call.ctx, c.tool, json.RawMessage(arguments)); err != nil {
			c.failure = cmp.Or(err.Error(), "The tool failed, and does not say why.")
		}
	}
}
