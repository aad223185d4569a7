// Package mcptools offers the model the tools of the MCP servers in a request of Responses as
// functions, and makes the calls that the model or the client asks for.
//
// Its tests are mcp_test.go and mcp_providers_test.go of llmgateway.
package mcptools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/mcpclient"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

const (
	// maxCalls bounds the calls of tools in one call, if the client does not by
	// max_tool_calls.
	maxCalls = 128
	// parallelCalls bounds how many calls of tools run at once.
	parallelCalls = 8
	// timeout bounds how long the list of a server's tools may take, and each call.
	timeout = 60 * time.Second
	// maxSize bounds the answers of the servers for one request, in bytes: the lists of their tools,
	// and the results of calls. It is about a million tokens, of which each round has a copy.
	maxSize = 4 << 20
)

// Servers are the URLs of the MCP servers that the gateway may call.
type Servers []string

// Check returns an error unless each is the URL of a server.
func (s Servers) Check() error {
	for _, server := range s {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("mcp %s: want the URL of an MCP server, like https://example.com/mcp", server)
		}
	}
	return nil
}

// Allow reports whether the gateway may call the server that a tool names.
func (s Servers) Allow(tool gjson.Result) bool {
	server := strings.TrimSuffix(tool.Get("server_url").Str, "/")
	return tool.Get("type").Str == "mcp" && slices.ContainsFunc(s, func(allowed string) bool {
		return server == strings.TrimSuffix(allowed, "/")
	})
}

// Tools are the tools of the MCP servers that a request names. Close must follow.
type Tools struct {
	// Items are the first items of the response, once Request has returned.
	Items []json.RawMessage

	ctx       context.Context
	servers   Servers
	limit     int                                // tools of a server
	sessions  map[string]*mcpclient.Session      // by server_label
	functions map[string][]translate.Tool        // the tools of each server, by server_label
	remaining int64                              // how many calls may still be made
	request   func() (*translate.Request, error) // parse, once

	mu          sync.Mutex        // guards the fields below
	size        int64             // of the servers' answers so far, in bytes
	reservation *admission.Answer // the memory that size takes
}

// Open returns the tools for the body of a request, at most limit for each server. The answers of the
// servers take memory until Close.
func Open(ctx context.Context, body []byte, servers Servers, limit int, memory *admission.Memory) *Tools {
	t := &Tools{
		ctx: ctx, servers: servers, limit: limit, sessions: make(map[string]*mcpclient.Session), functions: make(map[string][]translate.Tool),
		reservation: memory.Answer(ctx, -1, maxSize),
	}
	t.request = sync.OnceValues(func() (*translate.Request, error) { return t.parse(body) })
	return t
}

// Request returns the request with the tools of the servers as functions.
func (t *Tools) Request() (*translate.Request, error) { return t.request() }

// MayCall reports whether the model may call another tool.
func (t *Tools) MayCall() bool { return t.remaining > 0 }

// Close ends the sessions with the servers.
func (t *Tools) Close() {
	for _, s := range t.sessions {
		s.Close()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reservation.Release()
}

// grow takes memory for an answer of a server.
func (t *Tools) grow(bytes int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.size+int64(bytes) > maxSize {
		return fmt.Errorf("the answers of MCP servers are over %d bytes long", maxSize)
	}
	if refused := t.reservation.Grow(t.size + int64(bytes)); refused != nil {
		return refused
	}
	t.size += int64(bytes)
	return nil
}

// parse lists the tools of the servers, makes the calls that the client has approved, and
// reads the request.
func (t *Tools) parse(body []byte) (*translate.Request, error) {
	input := gjson.GetBytes(body, "input").Array()
	var servers []*server
	for i, tool := range gjson.GetBytes(body, "tools").Array() {
		if !t.servers.Allow(tool) {
			continue
		}
		s, err := newServer(fmt.Sprintf("tools[%d]", i), tool, input)
		if err != nil {
			return nil, err
		}
		if t.sessions[s.label] != nil {
			return nil, plugins.Invalid(s.param+".server_label", "Duplicate server_label '%s': every MCP server needs its own.", s.label)
		}
		t.sessions[s.label] = s.session
		servers = append(servers, s)
	}
	var wg sync.WaitGroup
	for _, s := range servers {
		if s.listed == nil {
			wg.Go(func() { s.list(t.ctx, t.limit, t.grow) })
		}
	}
	wg.Wait()
	for _, s := range servers {
		if s.item != nil {
			t.Items = append(t.Items, s.item)
		}
		t.functions[s.label] = s.functions()
	}
	t.remaining = maxCalls
	if limit := gjson.GetBytes(body, "max_tool_calls"); limit.Type == gjson.Number {
		t.remaining = min(t.remaining, limit.Int())
	}
	body, err := t.resume(body, input)
	if err != nil {
		return nil, err
	}
	return translate.ParseMCP(body, t.functions)
}

// resume makes the calls that the client approves, and puts them in the place of the
// approvals. A call that the client does not approve has failed.
func (t *Tools) resume(body []byte, input []gjson.Result) ([]byte, error) {
	approvals, answered := make(map[string]gjson.Result), make(map[string]bool)
	for _, item := range input {
		switch item.Get("type").Str {
		case "mcp_approval_request":
			approvals[item.Get("id").Str] = item
		case "mcp_call":
			answered[item.Get("approval_request_id").Str] = true
		}
	}
	var calls []*Call
	byIndex := make(map[int]*Call)
	for i, item := range input {
		id := item.Get("approval_request_id").Str
		if item.Get("type").Str != "mcp_approval_response" || answered[id] {
			continue
		}
		request, ok := approvals[id]
		if !ok {
			return nil, plugins.Invalid(fmt.Sprintf("input[%d].approval_request_id", i), "No approval request found with the id '%.128s'.", id)
		}
		if t.sessions[request.Get("server_label").Str] == nil {
			continue // the provider left it to the client, or another one did
		}
		c := &Call{
			Server: request.Get("server_label").Str, Tool: request.Get("name").Str, Arguments: request.Get("arguments").Str, approval: id,
		}
		byIndex[i] = c
		if item.Get("approve").Bool() {
			calls = append(calls, c)
		} else {
			c.Failure = strings.TrimSpace("The user did not approve this call. " + item.Get("reason").Str)
		}
	}
	if len(byIndex) == 0 {
		return body, nil
	}
	done := t.Start(calls)
	for range calls {
		<-done
	}
	for _, c := range calls {
		t.Items = append(t.Items, c.item())
	}
	return history.EditArray(body, "input", func(i int, item gjson.Result) string {
		c := byIndex[i]
		if c == nil {
			return item.Raw
		}
		request, _ := sjson.SetBytes(c.item(), "id", "mcp_"+c.approval) // of an object
		return string(request)
	}), nil
}

// Call is a call of a tool.
type Call struct {
	// Server is the label of the server, Arguments a JSON object.
	Server, Tool, Arguments string
	// Output is the result, Failure why there is no result. Start sets both.
	Output, Failure string

	approval string // the id of the request that the client has approved, or not
}

// item is the call as the Responses API has it, without an id.
func (c *Call) item() []byte {
	item := map[string]any{
		"type": "mcp_call", "server_label": c.Server, "name": c.Tool, "arguments": c.Arguments,
		"approval_request_id": c.approval, "status": "completed", "output": c.Output, "error": nil,
	}
	if c.Failure != "" {
		item["status"], item["output"], item["error"] = "failed", nil, c.Failure
	}
	b, _ := translate.Encode(item) // of strings
	return b
}

// Start makes calls, some of them at once. The channel gets each call when it has a result.
func (t *Tools) Start(calls []*Call) <-chan *Call {
	done := make(chan *Call, len(calls))
	running := make(chan struct{}, parallelCalls)
	for _, c := range calls {
		if t.remaining--; t.remaining < 0 {
			c.Failure = "The call was not made: the response has no more calls of tools."
			done <- c
			continue
		}
		go func() {
			running <- struct{}{}
			defer func() { <-running }()
			t.run(c)
			done <- c
		}()
	}
	return done
}

// run makes one call, and sets its output or its failure.
func (t *Tools) run(c *Call) {
	offered := slices.ContainsFunc(t.functions[c.Server], func(tool translate.Tool) bool { return tool.MCP.Name == c.Tool })
	arguments := cmp.Or(c.Arguments, "{}")
	switch {
	case !offered:
		c.Failure = "The MCP server has no such tool, or the request does not allow it."
	case !plugins.ValidJSON([]byte(arguments)) || !gjson.Parse(arguments).IsObject():
		c.Failure = "The arguments of the call are not a JSON object."
	default:
		var err error
		if c.Output, err = t.sessions[c.Server].Call(t.ctx, c.Tool, json.RawMessage(arguments)); err != nil {
			c.Failure = cmp.Or(err.Error(), "The tool failed, and does not say why.")
		}
		if err := t.grow(len(c.Output) + len(c.Failure)); err != nil {
			c.Output, c.Failure = "", err.Error()
		}
	}
}
