package mcptools

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"
	"golang.org/x/net/http/httpguts"

	"github.com/weirhq/weir/modules/llmgateway/mcpclient"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// server is a tool `mcp` of a request.
type server struct {
	param, label string
	tool         gjson.Result
	session      *mcpclient.Session
	listed       []mcpclient.Tool // the tools of the server, nil until they are known
	item         json.RawMessage  // mcp_list_tools, nil if the conversation has one
}

func newServer(param string, tool gjson.Result, input []gjson.Result) (*server, error) {
	s := &server{param: param, label: tool.Get("server_label").Str, tool: tool}
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
	s.session = mcpclient.Open(mcpclient.Server{URL: tool.Get("server_url").Str, Header: header, Timeout: timeout})
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
func (s *server) list(ctx context.Context, limit int, grow func(bytes int) error) {
	tools, err := s.session.Tools(ctx, limit, grow)
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
func (s *server) functions() []translate.Tool {
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
func (s *server) needsApproval(t mcpclient.Tool) bool {
	approval := s.tool.Get("require_approval")
	if !approval.IsObject() {
		return approval.Str != "never"
	}
	never, always := approval.Get("never"), approval.Get("always")
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
