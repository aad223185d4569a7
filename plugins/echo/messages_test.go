package echo

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

func TestMessagesStream(t *testing.T) {
	for _, s := range shapes {
		t.Run(s.name, func(t *testing.T) {
			whole := post(t, "/v1/messages", s.messages).Body.String()
			same(t, accumulateMessage(t, stream(t, "/v1/messages", s.messages)), whole)
		})
	}
}

// accumulateMessage makes of a stream's events what would have come without one.
func accumulateMessage(t *testing.T, all []event) string {
	t.Helper()
	var types []string
	var blocks []string
	var m, input string
	set := func(object *string, path string, value any) {
		changed, err := sjson.Set(*object, path, value)
		if err != nil {
			t.Fatal(err)
		}
		*object = changed
	}
	for _, e := range all {
		v := gjson.Parse(e.data)
		if v.Get("type").Str != e.name {
			t.Errorf("event %q: %s", e.name, e.data)
		}
		types = append(types, e.name)
		if e.name == "content_block_start" {
			input = ""
			blocks = append(blocks, v.Get("content_block").Raw)
		}
		if i := v.Get("index"); i.Exists() && i.Int() != int64(len(blocks)-1) {
			t.Errorf("index in block %d: %s", len(blocks)-1, e.data)
		}
		switch e.name {
		case "message_start":
			m = v.Get("message").Raw
			if v.Get("message.content").Raw != "[]" || v.Get("message.stop_reason").Type != gjson.Null {
				t.Errorf("the message begins as %s", e.data)
			}
		case "content_block_delta":
			block := &blocks[len(blocks)-1]
			switch v.Get("delta.type").Str {
			case "text_delta":
				set(block, "text", gjson.Get(*block, "text").Str+v.Get("delta.text").Str)
			case "thinking_delta":
				set(block, "thinking", gjson.Get(*block, "thinking").Str+v.Get("delta.thinking").Str)
			case "signature_delta":
				set(block, "signature", v.Get("delta.signature").Str)
			case "input_json_delta":
				input += v.Get("delta.partial_json").Str
				if json.Valid([]byte(input)) {
					set(block, "input", json.RawMessage(input))
				}
			default:
				t.Errorf("unknown delta: %s", e.data)
			}
		case "message_delta":
			set(&m, "stop_reason", v.Get("delta.stop_reason").Str)
			set(&m, "usage", json.RawMessage(v.Get("usage").Raw))
		}
	}
	grammar := regexp.MustCompile(`^message_start (content_block_start (content_block_delta )+content_block_stop )*message_delta message_stop$`)
	if line := strings.Join(types, " "); !grammar.MatchString(line) {
		t.Fatalf("not the order of Anthropic's: %s", line)
	}
	set(&m, "content", json.RawMessage("["+strings.Join(blocks, ",")+"]"))
	return m
}
