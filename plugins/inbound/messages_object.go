package inbound

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Object implements translate.Encoder.
func (m *messagesEncoder) Object(a *translate.Assembler) json.RawMessage {
	if e := a.Failure(); e != nil {
		return appendMessagesError(nil, e)
	}
	var blocks []byte
	for _, item := range items(a) {
		switch h := readHosted(item); {
		case item.Get("type").Str == "reasoning" && m.hides:
		case h.result != "" && m.hosted:
			blocks = append(append(append(element(blocks), h.useBlock(h.input)...), ','), h.resultBlock()...)
		default:
			blocks = appendBlocks(blocks, item)
		}
	}
	return appendMessage(nil, a, blocks, appendStop(nil, a))
}

// appendMessage appends a message. stop are the members of why it ended.
func appendMessage(b []byte, a *translate.Assembler, blocks, stop []byte) []byte {
	b = append(append(b, `{"id":"msg_`...), strings.TrimPrefix(a.ID(), "resp_")...)
	b = plugins.AppendString(append(b, `","type":"message","role":"assistant","model":`...), a.Model())
	b = append(append(append(b, `,"content":[`...), blocks...), ']')
	b = append(append(append(b, ','), stop...), `,"usage":`...)
	return append(appendMessagesUsage(b, a), '}')
}

// appendBlocks appends the blocks of an item of the response that the model wrote. In the place of an
// image is a text that names it.
func appendBlocks(b []byte, item gjson.Result) []byte {
	switch item.Get("type").Str {
	case "message":
		item.Get("content").ForEach(func(_, part gjson.Result) bool {
			textPart := part.Get("text")
			if part.Get("type").Str == "refusal" {
				textPart = part.Get("refusal")
			}
			if annotations := part.Get("annotations").Array(); len(annotations) > 0 {
				b = appendCited(b, textPart.Str, annotations)
				return true
			}
			b = appendText(append(element(b), `{"type":"text","text":`...), []byte(text(textPart)), true)
			b = append(b, '}')
			return true
		})
	case "reasoning":
		b = appendText(append(element(b), `{"type":"thinking","thinking":`...), appendThoughts(nil, item), true)
		b = plugins.AppendString(plugins.AppendKey(b, "signature"), item.Get("encrypted_content").Str)
		b = append(b, '}')
	case imageItem:
		if name := unplacedImage(item); name != "" {
			b = append(plugins.AppendString(append(element(b), `{"type":"text","text":`...), name), '}')
		}
	case "function_call", "custom_tool_call":
		b = append(append(element(b), `{"type":"tool_use","id":`...), item.Get("call_id").Raw...)
		b = plugins.AppendString(plugins.AppendKey(b, "name"), translate.FlatName(item))
		b = append(plugins.AppendKey(b, "input"), inputObject(item)...)
		b = append(b, '}')
	}
	return b
}

// imageItem is the type of items with images, which the model or a tool of the provider generated.
const imageItem = "image_generation_call"

// unplacedImage is the text in the place of an image, "" if item has none.
func unplacedImage(item gjson.Result) string {
	if item.Get("type").Str != imageItem || item.Get("result").Str == "" {
		return ""
	}
	format := item.Get("output_format").Str
	if format != "" {
		format = "image/" + format
	}
	return translate.UnplacedMedia(cmp.Or(format, "an image"), "Messages. /v1/responses and /v1/chat/completions have one")
}

// inputObject is the input of a call. Clients expect an object, and must not take arguments that were
// cut off for none.
func inputObject(item gjson.Result) []byte {
	arguments := item.Get("arguments").Str
	switch {
	case item.Get("input").Exists():
		arguments = `{"input":` + item.Get("input").Raw + `}`
	case arguments == "":
		return []byte("{}")
	case !translate.IsObject(arguments):
		return translate.InvalidArguments(arguments)
	}
	return []byte(compact(arguments))
}

// appendMessagesUsage appends usage as Anthropic counts it: the input without what was read from the cache or
// written to it.
func appendMessagesUsage(b []byte, a *translate.Assembler) []byte {
	t, _ := a.Tokens()
	return append(appendServerTools(translate.AppendCounts(b,
		translate.Labelled{Label: `{"input_tokens":`, N: t.Input - t.CacheRead - t.CacheWrite},
		translate.Labelled{Label: `,"cache_creation_input_tokens":`, N: t.CacheWrite},
		translate.Labelled{Label: `,"cache_read_input_tokens":`, N: t.CacheRead},
		translate.Labelled{Label: `,"cache_creation":{"ephemeral_5m_input_tokens":`, N: t.CacheWrite - t.CacheWrite1h},
		translate.Labelled{Label: `,"ephemeral_1h_input_tokens":`, N: t.CacheWrite1h},
		translate.Labelled{Label: `},"output_tokens":`, N: t.Output},
	), a), '}')
}

func appendMessagesError(b []byte, e *plugins.Error) []byte {
	b = plugins.AppendString(append(b, `{"type":"error","error":{"type":`...), e.AnthropicType())
	b = plugins.AppendString(plugins.AppendKey(b, "message"), e.AnthropicMessage())
	if e.Code != "" && e.Code != e.Type { // or else it says no more
		b = plugins.AppendString(append(b, `,"details":{"error_code":`...), e.Code)
		b = append(b, '}')
	}
	return append(b, `}}`...)
}
