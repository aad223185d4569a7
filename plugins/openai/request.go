package openai

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// withInput is the body with the input as p has it: without the items
// that were left out, and with reasoning as the provider wrote it. flat is for those who have no groups
// of tools.
func withInput(p *translate.Request, flat bool) ([]byte, error) {
	input := gjson.GetBytes(p.Raw, "input")
	if !input.IsArray() {
		return p.Raw, nil
	}
	byIndex := keptItems(p)
	items := make([]byte, 1, len(input.Raw))
	items[0] = '['
	for i, v := range input.Array() {
		item, raw := byIndex[i], v.Raw
		if r, ok := item.(*translate.ReasoningItem); ok {
			if raw = replay(r, raw); raw == "" {
				item = nil
				if err := p.DropForeignReasoning(r); err != nil {
					return nil, err
				}
			}
		}
		if item == nil {
			continue
		}
		if m, ok := item.(*translate.Message); ok && v.Get("type").Str == "agent_message" { // which OpenAI alone takes
			raw = `{"role":"user","content":` + string(plugins.AppendString(nil, m.Content[0].Text)) + "}"
		}
		if p.FromOtherAPI() {
			raw = withFailure(withBreakpoints(raw, item), item)
		}
		if flat {
			raw = flatItem(raw, item)
		}
		raw = withNames(raw, item)
		if len(items) > 1 {
			items = append(items, ',')
		}
		items = append(items, raw...)
	}
	return sjson.SetRawBytes(p.Raw, "input", append(items, ']'))
}

// withBreakpoints is an item with the marks of a prefix to be cached that OpenAI takes: none in the
// assistant's parts, and none for an hour, as Anthropic has it.
func withBreakpoints(raw string, item translate.Item) string {
	name, content, ofAssistant := "content", []translate.Part(nil), false
	switch item := item.(type) {
	case *translate.Message:
		content, ofAssistant = item.Content, item.Role == translate.RoleAssistant
	case *translate.ToolOutput:
		name, content = "output", item.Content
	}
	const mark = "prompt_cache_breakpoint"
	parts, changed := plugins.MapElements(gjson.Get(raw, name), func(i int, part gjson.Result) string {
		without := part.Raw
		switch {
		case i >= len(content):
		case ofAssistant && content[i].CacheBreakpoint:
			without, _ = sjson.Delete(without, mark) // an object, and a plain path, like the next ones
		case content[i].CachesLonger && part.Get(mark+".ttl").Str == "1h":
			without, _ = sjson.Delete(without, mark+".ttl")
		}
		return without
	})
	if changed {
		raw, _ = sjson.SetRaw(raw, name, parts)
	}
	return raw
}

// withFailure is an item of which the model reads that a call failed: it does not see the status
// of an output.
func withFailure(raw string, item translate.Item) string {
	o, ok := item.(*translate.ToolOutput)
	if !ok || !o.Failed {
		return raw
	}
	parts := fmt.Sprintf(`[{"type":"input_text","text":%q}`, translate.FailedCall)
	switch output := gjson.Get(raw, "output"); {
	case output.IsArray() && output.Get("0").Exists():
		parts += "," + output.Raw[1:]
	case output.IsArray() || output.Str == "":
		parts += "]"
	default:
		parts += `,{"type":"input_text","text":` + output.Raw + "}]"
	}
	raw, _ = sjson.SetRaw(raw, "output", parts) // an object, and a plain path
	return raw
}

// withNames is a call or an output with the id and the name that p has for it.
func withNames(raw string, item translate.Item) string {
	id, name := "", ""
	switch item := item.(type) {
	case *translate.ToolCall:
		id, name = item.CallID, item.Name
	case *translate.ToolOutput:
		id = item.CallID
	}
	if id != "" && id != gjson.Get(raw, "call_id").Str {
		raw, _ = sjson.Set(raw, "call_id", id) // an object, and a plain path
	}
	if given := gjson.Get(raw, "name"); name != "" && given.Exists() && !gjson.Get(raw, "namespace").Exists() && name != given.Str {
		raw, _ = sjson.Set(raw, "name", name) // likewise
	}
	return raw
}

// notInResponses are fields that clients of other APIs have and the provider refuses.
var notInResponses = []string{"seed", "top_k", "presence_penalty", "frequency_penalty"}

// Limits are those of OpenAI's models
// (https://platform.openai.com/docs/api-reference/responses/create). The error about a
// longer name of a user states the limit.
var Limits = translate.Limits{Output: 16, User: 64}

// Efforts are the levels of OpenAI's models for which the catalogue has no levels.
var Efforts = translate.Efforts[:6]

// fromOtherAPI is the body for a client of another API: without what the provider or the
// model refuses, and with the reasoning encrypted, for the provider stores no response of
// such a client.
func fromOtherAPI(body []byte, p *translate.Request, t translate.Target) ([]byte, error) {
	if err := p.Fit(t.Capabilities, Limits); err != nil {
		return nil, err
	}
	if err := p.FitReasoning(t.Capabilities, Efforts); err != nil {
		return nil, err
	}
	if err := p.DropForeign(p.Foreign...); err != nil {
		return nil, err
	}
	for part := range p.Parts {
		if part.Cited {
			if err := p.DropCitations(part); err != nil {
				return nil, err
			}
		}
	}
	body, err := p.WithChanges(body)
	if err != nil {
		return nil, err
	}
	if _, err := p.FitStop(0, nil); err != nil {
		return nil, err
	}
	if body, err = sjson.DeleteBytes(body, "stop"); err != nil {
		return nil, err
	}
	for _, field := range notInResponses {
		if p.Field(field) == nil {
			continue
		}
		if err := p.DropForeign(field); err != nil {
			return nil, err
		}
		if body, err = sjson.DeleteBytes(body, field); err != nil {
			return nil, err
		}
	}
	if body, err = withTools(body, p); err != nil {
		return nil, err
	}
	if body, err = sjson.DeleteBytes(body, "stream_options.include_usage"); err != nil {
		return nil, err
	}
	if isOf(complete, t) {
		for _, result := range results {
			if !slices.ContainsFunc(p.Tools, func(t translate.Tool) bool { return strings.HasPrefix(t.Type, result.tool) }) {
				continue
			}
			if body, err = sjson.SetBytes(body, "include.-1", result.include); err != nil {
				return nil, err
			}
		}
	}
	if t.Capabilities.Described() && !t.Capabilities.Reasoning { // which the provider refuses to set or to encrypt
		return plugins.DeleteField(body, "reasoning"), nil
	}
	if p.Reasoning.Summary != "" && !t.NoSummary && isOf(complete, t) {
		body, _ = sjson.SetBytes(body, "reasoning.summary", p.Reasoning.Summary) // an object, and a plain path
	}
	return sjson.SetBytes(body, "include.-1", encryptedReasoning)
}

// hostedTypes are the types of the tools that the Responses API hosts.
var hostedTypes = []string{
	"web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11", "code_interpreter", "file_search",
	"image_generation", "mcp", "shell", "tool_search",
	"x_search", // xAI's
}

// hosts reports whether the Responses API runs a tool. Clients of other APIs could not see the calls
// of those that the client runs, such as apply_patch
// (https://developers.openai.com/api/docs/guides/tools-shell, https://developers.openai.com/api/docs/guides/tools-tool-search).
func hosts(t *translate.Tool) bool {
	switch t.Type {
	case "shell":
		return strings.HasPrefix(gjson.GetBytes(t.Raw, "environment.type").Str, "container")
	case "tool_search":
		return string(t.Field("execution")) != `"client"`
	}
	return slices.Contains(hostedTypes, t.Type)
}

// results are what hosted tools come to, by what their types begin with. An answer has it only if the
// request includes it (https://platform.openai.com/docs/api-reference/responses/create#responses_create-include).
var results = []struct{ tool, include string }{
	{"web_search", "web_search_call.action.sources"},
	{"code_interpreter", "code_interpreter_call.outputs"},
}

// withTools is the body with the tools that the Responses API has. Its functions are strict
// unless they say otherwise, which those of other APIs are not
// (https://platform.openai.com/docs/guides/migrate-to-responses). Tools have no marks of a prefix to be
// cached: only parts have.
func withTools(body []byte, p *translate.Request) ([]byte, error) {
	if err := p.DropTools(func(t *translate.Tool) bool { return !hosts(t) }); err != nil {
		return nil, err
	}
	if len(p.Tools) == 0 {
		for _, field := range []string{"tools", "tool_choice", "parallel_tool_calls"} {
			body = plugins.DeleteField(body, field)
		}
		return body, nil
	}
	tools := make([]json.RawMessage, len(p.Tools))
	for i := range p.Tools {
		t := &p.Tools[i]
		if tools[i] = t.Raw; t.Type == "custom" {
			tools[i], _ = sjson.SetBytes(t.Raw, "name", t.Name) // an object, and a plain path
		} else if t.Type == "function" {
			f := function{Type: t.Type, Name: t.Name, Strict: t.IsStrict()}
			f.Description, f.Parameters = t.AsFunction()
			var err error
			if tools[i], err = translate.Encode(f); err != nil {
				return nil, err
			}
		}
		if !t.CacheBreakpoint {
			continue
		}
		tools[i], _ = sjson.DeleteBytes(tools[i], "prompt_cache_breakpoint") // an object, and a plain path
		if err := p.DropWithWarning(t.Param+".cache_control", translate.NotSupported); err != nil {
			return nil, err
		}
	}
	if name := p.ToolChoice.Name; name != "" {
		body, _ = sjson.SetBytes(body, "tool_choice.name", name) // likewise
	}
	allowed, changed := plugins.MapElements(gjson.GetBytes(body, "tool_choice.tools"), func(i int, tool gjson.Result) string {
		named := tool.Raw
		if i < len(p.ToolChoice.Allowed) && tool.Get("name").Exists() {
			named, _ = sjson.Set(named, "name", p.ToolChoice.Allowed[i]) // likewise
		}
		return named
	})
	if changed {
		body, _ = sjson.SetRawBytes(body, "tool_choice.tools", []byte(allowed)) // likewise
	}
	return sjson.SetBytes(body, "tools", tools)
}

// function is a tool that the client runs.
type function struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// keptItems are the items of the turns by their position in the input.
func keptItems(p *translate.Request) map[int]translate.Item {
	items := make(map[int]translate.Item)
	for _, t := range p.Turns {
		for _, item := range t.Items {
			switch i := item.(type) {
			case *translate.Message:
				items[i.Index] = item
			case *translate.ToolCall:
				items[i.Index] = item
			case *translate.ToolOutput:
				items[i.Index] = item
			case *translate.ReasoningItem:
				items[i.Index] = item
			}
		}
	}
	return items
}
