package translate

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// toolSearch is the type of a tool that finds other tools, and its name as a function
// (https://developers.openai.com/api/docs/guides/tools-tool-search). Codex runs it itself, for the
// tools of its MCP servers. A provider without such a tool calls a function; the client gets a
// tool_search_call.
const toolSearch = "tool_search"

// runsSearch reports whether a tool is a search that the client runs. Clients of other APIs have none.
func (p *Request) runsSearch(t *Tool) bool {
	return !p.FromOtherAPI() && t.Type == toolSearch && string(t.Field("execution")) == `"client"` && p.Tool(toolSearch) == nil
}

// searchFunction is a search of tools as a function.
func (t Tool) searchFunction() Tool {
	v := gjson.ParseBytes(t.Raw)
	t.Type, t.Name, t.searches = "function", toolSearch, true
	t.Description, t.Parameters = v.Get("description").Str, optionalObject(v.Get("parameters"))
	return t
}

// searchesOf are the ids of the calls of the client's search, if there is one, that have an output.
func (p *Request) searchesOf(input gjson.Result) map[string]bool {
	runs := false
	for i := range p.Tools {
		runs = runs || p.runsSearch(&p.Tools[i])
	}
	if !runs {
		return nil
	}
	calls, outputs := make(map[string]int), make(map[string]int)
	input.ForEach(func(_, v gjson.Result) bool {
		switch id := v.Get("call_id").Str; v.Get("type").Str {
		case "tool_search_call":
			calls[id]++
		case "tool_search_output":
			outputs[id] += calls[id]
		}
		return true
	})
	searches := make(map[string]bool, len(calls))
	for id, n := range calls {
		searches[id] = id != "" && n == 1 && outputs[id] == 1
	}
	return searches
}

// foundTools tells a model which tools a search has found: they are among its tools now.
func foundTools(tools gjson.Result) string {
	var later Request
	if err := later.parseTools(tools.Array(), "tools", ""); err != nil || len(later.Tools) == 0 {
		return "No tools were found."
	}
	found := "These tools were found, and can be called now:"
	for i := range later.Tools {
		found += "\n- " + later.Tools[i].Name
	}
	return found
}

// appendSearch appends the members of a tool_search_call. Its arguments are an object.
func (o *Output) appendSearch(b []byte) []byte {
	b = plugins.AppendString(plugins.AppendKey(b, "call_id"), o.CallID)
	arguments := json.RawMessage("{}")
	if text := o.Arguments(); IsObject(text) {
		arguments = json.RawMessage(text)
	} else if strings.TrimSpace(text) != "" {
		arguments = InvalidArguments(text)
	}
	return append(plugins.AppendKey(b, "arguments"), arguments...)
}
