package llmgateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// readable is a body without the reasoning that was sealed here: a provider that
// speaks the client's dialect could not read it.
func (a *attempt) readable(body []byte) []byte {
	if !bytes.Contains(body, []byte(`"`+sealed)) {
		return body
	}
	if a.call.dialect == plugins.Messages {
		return a.readableMessages(body)
	}
	if a.call.dialect != plugins.Responses {
		return body
	}
	return editArray(body, "input", func(i int, item gjson.Result) string {
		if item.Get("type").Str != "reasoning" || !strings.HasPrefix(item.Get("encrypted_content").Str, sealed) {
			return item.Raw
		}
		a.warnings = append(a.warnings, "input["+strconv.Itoa(i)+"].encrypted_content: reasoning of another provider, left out")
		return ""
	})
}

// readableMessages is readable for a body of Messages, which has the reasoning in
// blocks of its messages.
func (a *attempt) readableMessages(body []byte) []byte {
	return editArray(body, "messages", func(i int, message gjson.Result) string {
		edited := string(editArray([]byte(message.Raw), "content", func(n int, block gjson.Result) string {
			if !strings.HasPrefix(block.Get("signature").Str, sealed) && !strings.HasPrefix(block.Get("data").Str, sealed) {
				return block.Raw
			}
			a.warnings = append(a.warnings, fmt.Sprintf("messages[%d].content[%d]: reasoning of another provider, left out", i, n))
			return ""
		}))
		if edited != message.Raw && gjson.Get(edited, "content.#").Int() == 0 { // which the provider refuses
			return ""
		}
		return edited
	})
}

// editArray replaces the elements of an array of the body. "" leaves one out. Where
// there are none to replace, the body is the same byte for byte.
func editArray(body []byte, field string, edit func(i int, item gjson.Result) string) []byte {
	array := gjson.Get(text(body), field)
	if !array.IsArray() {
		return body
	}
	var items []string
	edited := false
	for i, item := range array.Array() {
		raw := edit(i, item)
		edited = edited || raw != item.Raw
		if raw != "" {
			items = append(items, raw)
		}
	}
	if !edited {
		return body
	}
	whole, err := sjson.SetRawBytes(body, field, []byte("["+strings.Join(items, ",")+"]"))
	if err != nil { // not for an object, which it is
		return body
	}
	return whole
}

// restoreReasoning gives the calls of earlier turns back the reasoning that led to them,
// where the client has left it out: there are models that refuse to continue, or to
// reason on, without it. The turns must be the attempt's own.
func (a *attempt) restoreReasoning(turns []translate.Turn) {
	for i := range turns {
		var items, since []translate.Item // of the turn, and since its last call
		for _, item := range turns[i].Items {
			since = append(since, item)
			if call, ok := item.(*translate.ToolCall); ok {
				items = append(items, a.reasoningFor(since, call)...)
				since = nil
			}
		}
		turns[i].Items = append(items, since...)
	}
}

// reasoningFor returns the items that end with a call, with the reasoning in its place.
func (a *attempt) reasoningFor(items []translate.Item, call *translate.ToolCall) []translate.Item {
	var bare []translate.Item
	for _, item := range items {
		if r, ok := item.(*translate.ReasoningItem); !ok {
			bare = append(bare, item)
		} else if r.EncryptedContent != "" {
			return items
		}
	}
	entries := a.remembered(call)
	if entries == nil {
		return items
	}
	var restored []translate.Item
	for messages, item := range bare {
		for len(entries) > 0 && (entries[0].messages <= messages || item == call) {
			restored = append(restored, entries[0].item)
			entries = entries[1:]
		}
		restored = append(restored, item)
	}
	return restored
}

// reasoningEntry is reasoning that stood behind so many messages.
type reasoningEntry struct {
	messages int
	item     *translate.ReasoningItem
}

// remembered is the reasoning between a call and the one before it that is
// remembered, and that the provider can read.
func (a *attempt) remembered(call *translate.ToolCall) []reasoningEntry {
	var entries []reasoningEntry
	messages := 0
	for _, item := range gjson.Parse(latest.get(a.call.memoryKey(call.CallID))).Array() {
		switch item.Get("type").Str {
		case "message":
			messages++
		case "reasoning":
			if content, ok := a.unseal(item.Get("encrypted_content").Str); ok {
				entries = append(entries, reasoningEntry{messages, &translate.ReasoningItem{
					Index: call.Index, ID: item.Get("id").Str, EncryptedContent: content,
				}})
			}
		case "function_call", "custom_tool_call":
			if item.Get("call_id").Str == call.CallID {
				if !same(item, call) {
					return nil
				}
				return entries
			}
			entries, messages = nil, 0
		}
	}
	return nil
}

// same reports whether a call that is remembered is the client's, who may write
// its arguments in another way.
func same(item gjson.Result, call *translate.ToolCall) bool {
	if call.Custom {
		return item.Get("input").Str == call.Arguments
	}
	var kept, sent any
	return json.Unmarshal([]byte(item.Get("arguments").Str), &kept) == nil &&
		json.Unmarshal([]byte(call.Arguments), &sent) == nil && reflect.DeepEqual(kept, sent)
}
