package chat

import (
	"slices"

	"github.com/tidwall/gjson"
)

// messageFields are the fields of messages that a closed vendor knows, by their role. Clients send
// back what OpenAI and other vendors answer beside them
// (https://docs.mistral.ai/api/endpoint/chat, https://github.com/BerriAI/litellm/issues/30835).
var messageFields = map[string][]string{
	"system":    {"role", "content"},
	"developer": {"role", "content"},
	"user":      {"role", "content"},
	"assistant": {"role", "content", "tool_calls", "prefix"},
	"tool":      {"role", "content", "tool_call_id", "name"},
}

// The fields of calls and of their functions, likewise.
var (
	callFields     = []string{"id", "type", "index", "function"}
	functionFields = []string{"name", "arguments"}
)

// closedMessages leaves out what a closed vendor does not know.
type closedMessages struct {
	changed bool
	dropped []string // fields that had a value, each once
}

func (c *closedMessages) appendAll(b []byte, messages gjson.Result) []byte {
	return appendEach(b, messages, func(b []byte, m gjson.Result) []byte {
		fields, known := messageFields[m.Get("role").Str]
		if !known {
			return append(b, m.Raw...)
		}
		return c.append(b, m, fields)
	})
}

// append appends an object with these fields alone.
func (c *closedMessages) append(b []byte, object gjson.Result, fields []string) []byte {
	b = append(b, '{')
	first := len(b)
	object.ForEach(func(key, v gjson.Result) bool {
		if !slices.Contains(fields, key.Str) {
			c.changed = true
			if v.Type != gjson.Null && v.Raw != "[]" && !slices.Contains(c.dropped, key.Str) {
				c.dropped = append(c.dropped, key.Str)
			}
			return true
		}
		if len(b) > first {
			b = append(b, ',')
		}
		b = append(append(b, key.Raw...), ':')
		switch {
		case key.Str == "tool_calls" && v.IsArray():
			b = appendEach(b, v, func(b []byte, call gjson.Result) []byte { return c.append(b, call, callFields) })
		case key.Str == "function" && v.IsObject():
			b = c.append(b, v, functionFields)
		default:
			b = append(b, v.Raw...)
		}
		return true
	})
	return append(b, '}')
}

func appendEach(b []byte, array gjson.Result, element func(b []byte, v gjson.Result) []byte) []byte {
	b = append(b, '[')
	for i, v := range array.Array() {
		if i > 0 {
			b = append(b, ',')
		}
		b = element(b, v)
	}
	return append(b, ']')
}
