package openai

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins/translate"
)

// withInput is the body with the input as p has it: without the items
// that were left out, and with reasoning as the provider wrote it.
func withInput(p *translate.Request) ([]byte, error) {
	input := gjson.GetBytes(p.Raw, "input")
	if !input.IsArray() {
		return p.Raw, nil
	}
	kept := keptItems(p)
	items := make([]byte, 1, len(input.Raw))
	items[0] = '['
	for i, v := range input.Array() {
		item, raw := kept[i], v.Raw
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
		if len(items) > 1 {
			items = append(items, ',')
		}
		items = append(items, raw...)
	}
	return sjson.SetRawBytes(p.Raw, "input", append(items, ']'))
}

// notInResponses are fields that clients of other APIs have and the provider refuses.
var notInResponses = []string{"stop", "seed", "top_k"}

// fromOtherAPI is the body for a client of another API: without what the provider
// refuses, and with the reasoning encrypted, for it stores none of such a client.
func fromOtherAPI(body []byte, p *translate.Request, t translate.Target) ([]byte, error) {
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
	var err error
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
	if body, err = withKnownTools(body, p); err != nil {
		return nil, err
	}
	if body, err = sjson.DeleteBytes(body, "stream_options.include_usage"); err != nil {
		return nil, err
	}
	if t.Capabilities.Described() && !t.Capabilities.Reasoning { // which the provider refuses to encrypt
		return body, nil
	}
	return sjson.SetBytes(body, "include.-1", "reasoning.encrypted_content")
}

// hosted are the types of the tools that the Responses API hosts.
var hosted = []string{
	"web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11", "code_interpreter", "file_search",
	"image_generation", "mcp", "computer", "computer_use_preview", "local_shell", "shell", "apply_patch", "tool_search",
	"x_search", // xAI's
}

// withKnownTools is the body without the tools that another API hosts.
func withKnownTools(body []byte, p *translate.Request) ([]byte, error) {
	all := len(p.Tools)
	err := p.DropTools(func(t *translate.Tool) bool { return !slices.Contains(hosted, t.Type) })
	if err != nil || len(p.Tools) == all {
		return body, err
	}
	if len(p.Tools) == 0 {
		if body, err = sjson.DeleteBytes(body, "tool_choice"); err != nil {
			return nil, err
		}
		return sjson.DeleteBytes(body, "tools")
	}
	tools := make([]json.RawMessage, len(p.Tools))
	for i := range p.Tools {
		tools[i] = p.Tools[i].Raw
	}
	return sjson.SetBytes(body, "tools", tools)
}

// keptItems are the items of the turns by their position in the input.
func keptItems(p *translate.Request) map[int]translate.Item {
	kept := make(map[int]translate.Item)
	for _, t := range p.Turns {
		for _, item := range t.Items {
			switch i := item.(type) {
			case *translate.Message:
				kept[i.Index] = item
			case *translate.ToolCall:
				kept[i.Index] = item
			case *translate.ToolOutput:
				kept[i.Index] = item
			case *translate.ReasoningItem:
				kept[i.Index] = item
			}
		}
	}
	return kept
}
