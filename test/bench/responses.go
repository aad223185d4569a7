//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/weirhq/weir/test/agents"
)

// reply is what a provider answers.
type reply struct {
	answer []byte
	// ends are where the events of a streamed answer end.
	ends []int
}

// event adds an event, with its name unless that is "".
func (r *reply) event(name string, data []byte) {
	if name != "" {
		r.answer = fmt.Appendf(r.answer, "event: %s\n", name)
	}
	r.answer = fmt.Appendf(r.answer, "data: %s\n\n", data)
	r.ends = append(r.ends, len(r.answer))
}

// object is JSON.
type object map[string]any

// translatedExchange is a streamed call of one of the APIs: the same text as a provider
// of this API answers it, as a provider of Messages does, and as Gemini does.
func (w *words) translatedExchange(k traffic, number int) (x exchange) {
	const frame = 350 // bytes that are not content
	instructions, input := w.Text(200), fmt.Sprintf("%s%d: %s", marker, number, w.Text(k.requestBytes-frame))
	request := object{"model": "gpt-4o-mini", "temperature": 0.7, "stream": true}
	deltas := w.deltas(k.events - 8)
	x.messages, x.gemini = messages(k, number, deltas), gemini(k, number, deltas)
	switch k.streams {
	case "responses":
		request["instructions"], request["input"] = instructions, input
		x.reply = responses(k, number, deltas)
	case "chat":
		request["messages"] = []object{{"role": "system", "content": instructions}, {"role": "user", "content": input}}
		request["stream_options"] = object{"include_usage": true}
		x.reply = chatStream(k, number, deltas)
	case "messages":
		request["system"], request["messages"] = instructions, []object{{"role": "user", "content": input}}
		request["max_tokens"] = 1000
		x.reply = x.messages
	}
	x.request = agents.Encode(request)
	return x
}

func responses(k traffic, number int, deltas []string) (r reply) {
	id, item := fmt.Sprintf("resp_%048d", number), fmt.Sprintf("msg_%048d", number)
	sequence := 0
	event := func(name string, fields object) {
		fields["type"], fields["sequence_number"] = name, sequence
		sequence++
		r.event(name, agents.Encode(fields))
	}
	response := func(status string, output []object, usage any) object {
		return object{"response": object{
			"id": id, "object": "response", "created_at": 1763700000, "status": status, "background": false,
			"error": nil, "incomplete_details": nil, "instructions": nil, "max_output_tokens": nil, "max_tool_calls": nil,
			"model": "gpt-4o-mini-2024-07-18", "output": output, "parallel_tool_calls": true, "previous_response_id": nil,
			"prompt_cache_key": nil, "reasoning": object{"effort": nil, "summary": nil}, "safety_identifier": nil,
			"service_tier": "default", "store": true, "temperature": 0.7, "text": object{"format": object{"type": "text"}, "verbosity": "medium"},
			"tool_choice": "auto", "tools": []object{}, "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled", "usage": usage,
			"user": nil, "metadata": object{},
		}}
	}
	part := func(text string) object {
		return object{"type": "output_text", "annotations": []object{}, "logprobs": []object{}, "text": text}
	}
	message := func(status string, content ...object) object {
		return object{"id": item, "type": "message", "status": status, "role": "assistant", "content": content}
	}
	located := func(fields object) object {
		fields["item_id"], fields["output_index"], fields["content_index"] = item, 0, 0
		return fields
	}
	text := strings.Join(deltas, "")
	event("response.created", response("in_progress", []object{}, nil))
	event("response.in_progress", response("in_progress", []object{}, nil))
	event("response.output_item.added", object{"output_index": 0, "item": message("in_progress")})
	event("response.content_part.added", located(object{"part": part("")}))
	for _, d := range deltas {
		event("response.output_text.delta", located(object{"delta": d, "logprobs": []object{}, "obfuscation": "0123456789"}))
	}
	event("response.output_text.done", located(object{"text": text, "logprobs": []object{}}))
	event("response.content_part.done", located(object{"part": part(text)}))
	event("response.output_item.done", object{"output_index": 0, "item": message("completed", part(text))})
	u := usageOf(k)
	event("response.completed", response("completed", []object{message("completed", part(text))}, object{
		"input_tokens": u.PromptTokens, "input_tokens_details": object{"cached_tokens": 0},
		"output_tokens": u.CompletionTokens, "output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": u.TotalTokens,
	}))
	return r
}

func messages(k traffic, number int, deltas []string) (r reply) {
	event := func(name string, fields object) {
		fields["type"] = name
		r.event(name, agents.Encode(fields))
	}
	u := usageOf(k)
	event("message_start", object{"message": object{
		"id": fmt.Sprintf("msg_%024d", number), "type": "message", "role": "assistant", "model": "claude-haiku-4-5-20251001",
		"content": []object{}, "stop_reason": nil, "stop_sequence": nil, "usage": object{
			"input_tokens": u.PromptTokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 1,
		},
	}})
	event("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
	event("ping", object{})
	for _, d := range deltas {
		event("content_block_delta", object{"index": 0, "delta": object{"type": "text_delta", "text": d}})
	}
	event("content_block_stop", object{"index": 0})
	event("message_delta", object{
		"delta": object{"stop_reason": "end_turn", "stop_sequence": nil},
		"usage": object{"input_tokens": u.PromptTokens, "output_tokens": u.CompletionTokens},
	})
	event("message_stop", object{})
	return r
}

func gemini(k traffic, number int, deltas []string) (r reply) {
	u := usageOf(k)
	for i, d := range deltas {
		candidate := object{"content": object{"parts": []object{{"text": d}}, "role": "model"}, "index": 0}
		if i == len(deltas)-1 {
			candidate["finishReason"] = "STOP"
		}
		r.event("", agents.Encode(object{
			"candidates": []object{candidate},
			"usageMetadata": object{
				"promptTokenCount": u.PromptTokens, "candidatesTokenCount": i + 1, "totalTokenCount": u.PromptTokens + i + 1,
				"promptTokensDetails": []object{{"modality": "TEXT", "tokenCount": u.PromptTokens}},
			},
			"modelVersion": "gemini-2.5-flash", "responseId": fmt.Sprintf("%022d", number),
		}))
	}
	return r
}
