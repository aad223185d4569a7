package openai

import (
	"fmt"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
)

// withInput is the body with the input as the Prompt has it: without the items
// that were left out, and with reasoning as the provider wrote it.
func withInput(p *plugins.Request) ([]byte, error) {
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
func keptItems(p *plugins.Request) map[int]plugins.Item {
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
