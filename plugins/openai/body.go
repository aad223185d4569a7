package openai

import (
	"encoding/json"
	"fmt"
	"unsafe"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
)

// withModel is a copy of the body that asks for model, and is the same byte for
// byte in all else. A body may name its model twice, and readers differ in which
// one counts.
func withModel(body []byte, model string) []byte {
	name, _ := json.Marshal(model) // a string
	edited := make([]byte, 0, len(body)+len(name))
	rest := 0
	gjson.Parse(view(body)).ForEach(func(key, v gjson.Result) bool {
		if key.Str == "model" {
			edited = append(edited, body[rest:v.Index]...)
			edited = append(edited, name...)
			rest = v.Index + len(v.Raw)
		}
		return true
	})
	return append(edited, body[rest:]...)
}

// view is the bytes as a string without a copy, good as long as nobody writes
// into them.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// withInput is the body with the input as the Prompt has it: without the items
// that were left out, and with reasoning as the provider wrote it.
func withInput(p *plugins.Prompt) ([]byte, error) {
	if p.Strict && len(p.Warnings) > 0 {
		return nil, plugins.Unsupported("input", "%s, and the request is strict.", p.Warnings[0])
	}
	input := gjson.GetBytes(p.Raw, "input")
	if !input.IsArray() {
		return p.Raw, nil
	}
	kept := keptItems(p)
	items := make([]byte, 1, len(input.Raw))
	items[0] = '['
	for i, v := range input.Array() {
		item, raw := kept[i], v.Raw
		if r, ok := item.(*plugins.ReasoningItem); ok {
			if raw = replay(r, raw); raw == "" {
				item = nil
				if err := p.Drop(plugins.Warn, fmt.Sprintf("input[%d]", i), "reasoning of another provider, left out"); err != nil {
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

// keptItems are the items of the turns by where they stand in the input.
func keptItems(p *plugins.Prompt) map[int]plugins.Item {
	kept := make(map[int]plugins.Item)
	for _, t := range p.Turns {
		for _, item := range t.Items {
			switch i := item.(type) {
			case *plugins.Message:
				kept[i.Index] = item
			case *plugins.ToolCall:
				kept[i.Index] = item
			case *plugins.ToolOutput:
				kept[i.Index] = item
			case *plugins.ReasoningItem:
				kept[i.Index] = item
			}
		}
	}
	return kept
}
