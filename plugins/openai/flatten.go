package openai

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// flattens reports whether a request of Responses goes with all of its tools in one list: it has what the
// target does not take and Codex sends. Others than OpenAI and Azure refuse tools in namespaces, tools in the
// input, and a search of tools that the client runs, lose the tools, or call them by a name that the client does
// not have (https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/1810,
// https://github.com/ollama/ollama/issues/18284, https://github.com/openai/codex/issues/26234). Of the models
// of both, those before gpt-5.4 have no search (https://developers.openai.com/api/docs/guides/tools-tool-search,
// https://learn.microsoft.com/azure/foundry/openai/how-to/tool-search).
func flattens(body *plugins.Object, t translate.Target) bool {
	if isOf(complete, t) {
		return beforeSearch.MatchString(t.Listed) && groups(body, searchTypes)
	}
	return groups(body, groupTypes)
}

// beforeSearch are the models that know no search of tools.
var beforeSearch = regexp.MustCompile(`^(?:o[0-9]|chatgpt-|gpt-[34]|gpt-5(?:\.[0-3])?(?:-|$))`)

// searchTypes are the types of tools that the client runs to search others, and of items of the input that have
// tools which it has found. groupTypes are these and the types of other groups of tools.
var (
	searchTypes = []string{"tool_search", "tool_search_output"}
	groupTypes  = append([]string{"namespace", "additional_tools"}, searchTypes...)
)

// groups reports whether a request of Responses has tools, or items, of these types.
func groups(body *plugins.Object, types []string) bool {
	if !bytes.Contains(body.Data, []byte(`"namespace"`)) && !bytes.Contains(body.Data, []byte(`"tool_search`)) && !bytes.Contains(body.Data, []byte(`"additional_tools"`)) {
		return false
	}
	found := false
	look := func(_, v gjson.Result) bool {
		kind := v.Get("type").Str
		found = slices.Contains(types, kind) && (kind != "tool_search" || v.Get("execution").Str == "client")
		return !found
	}
	body.Get("tools").ForEach(look)
	if input := body.Get("input"); !found && input.IsArray() {
		input.ForEach(look)
	}
	return found
}

// withFlatTools is the body with all tools in one list, under the names that FitCalls has given them.
// The Assembler gives the client its own names back.
func withFlatTools(body []byte, p *translate.Request) ([]byte, error) {
	tools := make([]json.RawMessage, len(p.Tools))
	for i := range p.Tools {
		t := &p.Tools[i]
		tools[i] = t.Raw
		if t.Hosted() {
			continue
		}
		if gjson.GetBytes(t.Raw, "type").Str != t.Type { // a search, or of an MCP server
			f := function{Type: t.Type, Name: t.Name, Strict: t.IsStrict()}
			f.Description, f.Parameters = t.AsFunction()
			var err error
			if tools[i], err = translate.Encode(f); err != nil {
				return nil, err
			}
			continue
		}
		tools[i], _ = sjson.SetBytes(t.Raw, "name", t.Name) // an object, and a plain path
		if t.Type == "function" && string(t.Parameters) != gjson.GetBytes(t.Raw, "parameters").Raw {
			tools[i], _ = sjson.SetRawBytes(tools[i], "parameters", translate.ObjectSchema(t.Parameters)) // likewise
		}
		tools[i], _ = sjson.DeleteBytes(tools[i], "defer_loading") // likewise: there is nothing to load it with
	}
	body, err := sjson.SetBytes(body, "tools", tools)
	if c := p.ToolChoice; err == nil && c.Name != "" {
		body, err = sjson.SetBytes(body, "tool_choice", map[string]string{"type": c.Type, "name": c.Name})
	}
	if err != nil {
		return nil, err
	}
	allowed, changed := plugins.MapElements(gjson.GetBytes(body, "tool_choice.tools"), func(i int, tool gjson.Result) string {
		if i >= len(p.ToolChoice.Allowed) || !tool.Get("name").Exists() {
			return tool.Raw
		}
		named, _ := sjson.Set(tool.Raw, "name", p.ToolChoice.Allowed[i]) // an object, and a plain path
		named, _ = sjson.Delete(named, "namespace")                      // likewise
		return named
	})
	if changed {
		return sjson.SetRawBytes(body, "tool_choice.tools", []byte(allowed))
	}
	return body, nil
}

// flatItem is a call of a tool in a namespace, or of a search of tools, or the output of one, as that of
// a function.
func flatItem(raw string, item translate.Item) string {
	fields := map[string]string{}
	switch item := item.(type) {
	case *translate.ToolCall:
		if v := gjson.Parse(raw); v.Get("namespace").Exists() {
			raw, _ = sjson.Delete(raw, "namespace")    // an object, and a plain path
			raw, _ = sjson.Set(raw, "name", item.Name) // likewise
			return raw
		} else if v.Get("type").Str != "tool_search_call" {
			return raw
		}
		fields["type"], fields["call_id"], fields["name"], fields["arguments"] = "function_call", item.CallID, item.Name, item.Arguments
	case *translate.ToolOutput:
		if gjson.Get(raw, "type").Str != "tool_search_output" {
			return raw
		}
		fields["type"], fields["call_id"], fields["output"] = "function_call_output", item.CallID, item.Content[0].Text
	default:
		return raw
	}
	flat, _ := translate.Encode(fields) // texts
	return string(flat)
}
