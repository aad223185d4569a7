// Package reasoning takes the reasoning that a provider cannot read out of a request, and puts
// back the reasoning that a client has left out.
//
// Its tests are reasoning_test.go and restorestate_test.go of llmgateway.
package reasoning

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/inbound"
	"github.com/weirhq/weir/plugins/translate"
)

// Readable returns a body of the dialect without the reasoning that was sealed here, which a
// provider that speaks the dialect cannot read.
func Readable(d plugins.Dialect, body []byte) (readable []byte, warnings []string) {
	if d != plugins.Messages && !d.OfResponses() {
		return body, nil
	}
	isSealed := bytes.Contains(body, []byte(`"`+secret.Sealed))
	if d == plugins.Messages && (isSealed || bytes.Contains(body, []byte(`result_location"`)) || bytes.Contains(body, []byte(inbound.TranslatedToolUse))) {
		return readableMessages(body)
	}
	if !isSealed || d == plugins.Messages {
		return body, nil
	}
	readable = history.EditArray(body, "input", func(i int, item gjson.Result) string {
		if item.Get("type").Str != "reasoning" || !strings.HasPrefix(item.Get("encrypted_content").Str, secret.Sealed) {
			return item.Raw
		}
		warnings = append(warnings, "input["+strconv.Itoa(i)+"].encrypted_content: reasoning of another provider, left out")
		return ""
	})
	return readable, warnings
}

// readableMessages is Readable for a body of Messages, whose messages have the reasoning in
// blocks. It also leaves out what another provider's tools have found, and citations of its
// sources: Anthropic's citations have the text that they cite.
func readableMessages(body []byte) (readable []byte, warnings []string) {
	readable = history.EditArray(body, "messages", func(i int, message gjson.Result) string {
		edited := string(history.EditArray([]byte(message.Raw), "content", func(n int, block gjson.Result) string {
			if block.Get(`citations.#(cited_text=="")`).Exists() {
				warnings = append(warnings, fmt.Sprintf("messages[%d].content[%d]: citations of another provider, left out", i, n))
				cited, _ := sjson.Delete(block.Raw, "citations") // an object
				return cited
			}
			if id := block.Get("id").Str + block.Get("tool_use_id").Str; strings.HasPrefix(id, inbound.TranslatedToolUse) {
				warnings = append(warnings, fmt.Sprintf("messages[%d].content[%d]: tool of another provider, left out", i, n))
				return ""
			}
			if !strings.HasPrefix(block.Get("signature").Str, secret.Sealed) && !strings.HasPrefix(block.Get("data").Str, secret.Sealed) {
				return block.Raw
			}
			warnings = append(warnings, fmt.Sprintf("messages[%d].content[%d]: reasoning of another provider, left out", i, n))
			return ""
		}))
		if edited != message.Raw && gjson.Get(edited, "content.#").Int() == 0 { // empty: the provider refuses it
			return ""
		}
		return edited
	})
	return readable, warnings
}

// WithoutEmpty returns a body of Responses without the empty reasoning of earlier responses,
// which a provider that speaks Responses would look for in vain.
func WithoutEmpty(body []byte) []byte {
	return history.EditArray(body, "input", func(_ int, item gjson.Result) string {
		if item.Get("type").Str == "reasoning" && item.Get("encrypted_content").Str == "" {
			return ""
		}
		return item.Raw
	})
}

// Without returns a body of the dialect without the reasoning of earlier turns, because the provider refuses it.
func Without(d plugins.Dialect, body []byte) (without []byte, warnings []string) {
	field := "messages"
	switch {
	case d == plugins.Messages:
		without = history.EditArray(body, field, func(_ int, message gjson.Result) string {
			edited := string(history.EditArray([]byte(message.Raw), "content", func(_ int, block gjson.Result) string {
				if kind := block.Get("type").Str; kind == "thinking" || kind == "redacted_thinking" {
					return ""
				}
				return block.Raw
			}))
			if edited != message.Raw && gjson.Get(edited, "content.#").Int() == 0 { // empty: the provider refuses it
				return ""
			}
			return edited
		})
	case d.OfResponses():
		field = "input"
		without = history.EditArray(body, field, func(_ int, item gjson.Result) string {
			if item.Get("type").Str == "reasoning" {
				return ""
			}
			if !item.Get("id").Exists() || !slices.Contains(optionalID, item.Get("type").Str) {
				return item.Raw
			}
			unnamed, _ := sjson.Delete(item.Raw, "id") // an object; by the id, OpenAI would miss the reasoning before it
			return unnamed
		})
	default:
		return body, nil
	}
	return without, []string{field + ": reasoning of earlier turns, which the provider refuses, left out"}
}

// optionalID are the types of items that reasoning leads to and that need no id in a request. All others need
// theirs, such as the call of a computer, or the request for an approval, which the approval names.
var optionalID = []string{"", "message", "function_call", "custom_tool_call", "tool_search_call", "shell_call", "apply_patch_call"}

// Memory has the outputs of earlier responses.
type Memory struct {
	// Get returns the outputs in JSON, by the ids of calls in them.
	Get func(callIDs []string) map[string]string
	// Unseal opens what was sealed for the provider.
	Unseal func(text string) (content string, ok bool)
}

// Restore gives the calls of earlier turns back the reasoning that led to them, if the client
// has left it out: some models refuse to continue without it. It changes the turns.
func (m Memory) Restore(turns []translate.Turn) {
	var ids []string
	for _, turn := range turns {
		for items, call := range upToCalls(turn.Items) {
			if call != nil && !slices.ContainsFunc(items, hasReasoning) {
				ids = append(ids, call.CallID)
			}
		}
	}
	outputs := m.Get(ids)
	if len(outputs) == 0 {
		return
	}
	for i := range turns {
		var restored []translate.Item
		for items, call := range upToCalls(turns[i].Items) {
			if call != nil && !slices.ContainsFunc(items, hasReasoning) {
				items = restore(items, call, m.between(call, outputs[call.CallID]))
			}
			restored = append(restored, items...)
		}
		turns[i].Items = restored
	}
}

// upToCalls cuts items after each call. The last piece may end without a call.
func upToCalls(items []translate.Item) iter.Seq2[[]translate.Item, *translate.ToolCall] {
	return func(yield func([]translate.Item, *translate.ToolCall) bool) {
		for len(items) > 0 {
			n, call := len(items), (*translate.ToolCall)(nil)
			for i, item := range items {
				if c, ok := item.(*translate.ToolCall); ok {
					n, call = i+1, c
					break
				}
			}
			if !yield(items[:n], call) {
				return
			}
			items = items[n:]
		}
	}
}

// hasReasoning reports whether an item has reasoning that a provider can read.
func hasReasoning(item translate.Item) bool {
	r, ok := item.(*translate.ReasoningItem)
	return ok && r.EncryptedContent != ""
}

// restore returns the items that end with a call, with the reasoning in its place.
func restore(items []translate.Item, call *translate.ToolCall, entries []entry) []translate.Item {
	if entries == nil {
		return items
	}
	var restored []translate.Item
	messages := 0
	for _, item := range items {
		if _, ok := item.(*translate.ReasoningItem); ok {
			continue // it is empty
		}
		for len(entries) > 0 && (entries[0].messages <= messages || item == call) {
			restored = append(restored, entries[0].item)
			entries = entries[1:]
		}
		restored = append(restored, item)
		messages++
	}
	return restored
}

// entry is an item of reasoning, and how many messages stood before it.
type entry struct {
	messages int
	item     *translate.ReasoningItem
}

// between returns the reasoning between a call and the call before it, in an output that
// is remembered, if the provider can read it.
func (m Memory) between(call *translate.ToolCall, output string) []entry {
	var entries []entry
	messages := 0
	for _, item := range gjson.Parse(output).Array() {
		switch item.Get("type").Str {
		case "message":
			messages++
		case "reasoning":
			if content, ok := m.Unseal(item.Get("encrypted_content").Str); ok {
				entries = append(entries, entry{messages, &translate.ReasoningItem{
					Index: call.Index, ID: item.Get("id").Str, EncryptedContent: content,
				}})
			}
		case "function_call", "custom_tool_call", "tool_search_call":
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

// same reports whether a remembered call is the client's call, whose arguments the client may
// write in another way.
func same(item gjson.Result, call *translate.ToolCall) bool {
	if call.Custom {
		return item.Get("input").Str == call.Arguments
	}
	var kept, sent any
	return json.Unmarshal([]byte(item.Get("arguments").String()), &kept) == nil &&
		json.Unmarshal([]byte(call.Arguments), &sent) == nil && reflect.DeepEqual(kept, sent)
}

// Output returns the output of a response in JSON, and the ids of the calls in it that reasoning
// led to.
func Output(outputs []*translate.Output) (text []byte, callIDs []string) {
	reasoned := false
	text = []byte{'['}
	for _, o := range outputs {
		if o.JSON == nil { // it was open when the response failed
			continue
		}
		reasoned = reasoned || o.Sealed != ""
		if o.IsCall() && reasoned {
			callIDs = append(callIDs, o.CallID)
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(text, o.JSON...)
	}
	return append(text, ']'), callIDs
}
