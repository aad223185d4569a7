package translate

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
)

// MCPTool is a tool of an MCP server that the host calls for the model
// (https://platform.openai.com/docs/guides/tools-connectors-mcp).
type MCPTool struct {
	// Server is the server_label of the client, and Name the tool's name at the server.
	Server, Name string
	// NeedsApproval: the model's call is only shown to the client, who may approve it.
	NeedsApproval bool
}

// maxToolName is the longest name of a function, in bytes, that all providers take.
const maxToolName = 64

// nameMCPTools gives the functions of MCP servers names that providers take, and that no
// other tool has.
func (p *Request) nameMCPTools() {
	var names NameSet
	for i := range p.Tools {
		if t := &p.Tools[i]; t.MCP == nil {
			names.Take(t.Name)
		}
	}
	for i := range p.Tools {
		t := &p.Tools[i]
		if t.MCP == nil {
			continue
		}
		base := "mcp_" + toolWord(t.MCP.Server) + "_" + toolWord(t.MCP.Name)
		base = base[:min(len(base), maxToolName)]
		t.Name = names.Name(base, func(n int) string {
			end := suffix(n)
			return base[:min(len(base), maxToolName-len(end))] + end
		})
	}
}

// toolWord replaces the characters that names of functions do not have.
func toolWord(s string) string {
	return strings.Map(func(c rune) rune {
		if IsAlphanumeric(c) || c == '_' || c == '-' {
			return c
		}
		return '_'
	}, s)
}

// mcpNames returns the names of the functions that an element of a tool choice means. ok is true if
// the host calls its MCP server.
func (p *Request) mcpNames(v gjson.Result) (names []string, ok bool) {
	server, name := v.Get("server_label").Str, v.Get("name").Str
	if _, ok = p.mcp[server]; !ok || v.Get("type").Str != "mcp" {
		return nil, false
	}
	for i := range p.Tools {
		if t := &p.Tools[i]; t.MCP != nil && t.MCP.Server == server && (name == "" || t.MCP.Name == name) {
			names = append(names, t.Name)
		}
	}
	return names, true
}

// mcpTool is the tool that an item of the input calls, nil unless the host calls its MCP server.
func (p *Request) mcpTool(v gjson.Result) *Tool {
	if len(p.mcp) == 0 {
		return nil
	}
	server, name := v.Get("server_label").Str, v.Get("name").Str
	i := slices.IndexFunc(p.Tools, func(t Tool) bool { return t.MCP != nil && t.MCP.Server == server && t.MCP.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Tools[i]
}

func addMCPCall(c *conversation, i int, t *Tool, v gjson.Result) error {
	call := &ToolCall{Index: i, CallID: v.Get("id").Str, Name: t.Name, Arguments: v.Get("arguments").Str}
	if call.CallID == "" {
		return Missing(indexPath("input", i) + ".id")
	}
	if err := c.addCall(call); err != nil {
		return err
	}
	output := &ToolOutput{Index: i, CallID: call.CallID, Name: t.Name}
	text := v.Get("output").Str
	if failure := v.Get("error"); failure.Type != gjson.Null {
		output.Failed, text = true, failure.String()
	}
	output.Content = []Part{{Param: indexPath("input", i) + ".output", Type: PartText, Text: text}}
	c.results = append(c.results, output)
	return nil
}

// Continue adds the items of a response, with the results of its calls, to the turns, so
// that the model goes on. What the client required of tools it has got. open is that of
// Unseal.
func (p *Request) Continue(items []json.RawMessage, open func(sealed string) (string, bool)) error {
	next := Request{Tools: p.Tools, mcp: p.mcp}
	var c conversation
	for i, item := range items {
		if err := next.parseItem(&c, i, gjson.ParseBytes(item)); err != nil {
			return err
		}
	}
	var err error
	if next.Turns, err = c.turns(); err != nil {
		return err
	}
	if err := next.Unseal(open); err != nil {
		return err
	}
	p.Turns = append(slices.Clip(p.Turns), next.Turns...)
	if p.ToolChoice.Mode == "required" {
		p.ToolChoice = ToolChoice{Mode: "auto", Allowed: p.ToolChoice.Allowed}
		if gjson.GetBytes(p.Raw, "tool_choice.type").Str != "allowed_tools" {
			p.ToolChoice.Allowed = nil
		}
	}
	return nil
}

// withoutMCPSecrets is a tool, or an item with tools, without the credentials for MCP servers,
// which nobody must keep.
func withoutMCPSecrets(tool string) string {
	v := gjson.Parse(tool)
	clean := func(_ int, inner gjson.Result) string { return withoutMCPSecrets(inner.Raw) }
	if tools, changed := plugins.MapElements(v.Get("tools"), clean); changed { // of a namespace
		tool, _ = sjson.SetRaw(tool, "tools", tools) // of an object
	}
	if v.Get("type").Str != "mcp" {
		return tool
	}
	for _, secret := range []string{"headers", "authorization"} {
		if v.Get(secret).Exists() {
			tool, _ = sjson.SetRaw(tool, secret, "null") // of an object
		}
	}
	return tool
}

// MCPCalls closes the open items, and returns the calls of MCP tools that the host has to
// make. MCPResult ends each of them. It returns nil if the response ends here.
func (a *Assembler) MCPCalls() []*Output {
	if a.Failure() != nil || a.reason != ReasonStop {
		return nil
	}
	a.closeAll(statusCompleted)
	a.flush()
	return slices.Clone(a.rounds.calling)
}

// MCPResult ends the call of an MCP tool, with its output or with why it failed.
func (a *Assembler) MCPResult(o *Output, output, failure string) {
	if a.done() {
		return
	}
	if failure == "" && !a.takes(max(len(output), 1)) {
		return
	}
	a.grow(len(failure))
	a.rounds.calling = slices.DeleteFunc(a.rounds.calling, func(other *Output) bool { return other == o })
	o.output, o.failure = output, failure
	status := statusCompleted
	if failure != "" {
		status = statusFailed
	}
	o.JSON = o.appendJSON(nil, status)
	o.parts = nil
	a.emit(Event{Type: ItemClosed, Output: o})
	a.flush()
}

// Round returns the items since the last NextRound. ok is false where the client has to
// go on: the response ends.
func (a *Assembler) Round() (items []json.RawMessage, ok bool) {
	for _, o := range a.items[a.rounds.begins:] {
		if o.IsCall() || o.Kind == ApprovalOutput {
			return nil, false
		}
		items = append(items, o.JSON)
	}
	return items, true
}

// NextRound prepares the Assembler for what the model says to the results of its calls,
// which is added to the response.
func (a *Assembler) NextRound() {
	if a.rounds.begins == 0 {
		a.rounds.usage = a.seen.Usage
	} else {
		a.rounds.usage.Add(a.seen.Usage)
	}
	a.rounds.begins = len(a.items)
	a.seen.Usage, a.seen.Beside = plugins.Usage{}, nil
	a.seen.Finish, a.seen.Interrupted, a.seen.Phase, a.reason = "", false, plugins.Running, ReasonNone
}

// TextLength is the number of bytes that the model has written in this round, with the items that
// are still open and with sealed reasoning.
func (a *Assembler) TextLength() (n int64) {
	if a.cut { // and all items are closed
		return int64(a.size)
	}
	for _, o := range a.items[min(a.rounds.begins, len(a.items)):] {
		n += int64(len(o.Name) + len(o.Sealed) + len(o.quoted))
		for _, p := range o.parts {
			n += int64(len(p.Text))
		}
	}
	return n
}
