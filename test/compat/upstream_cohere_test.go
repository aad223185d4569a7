package compat

import (
	"encoding/json"
	"net/http"

	"github.com/tidwall/gjson"
)

// cohereChat is the format of Cohere, whose requests are much like Chat Completions.
var cohereChat = format{
	request: func(body gjson.Result) object {
		request := object{"messages": json.RawMessage(body.Get("messages").Raw)}
		var functions []object
		for _, f := range body.Get("tools.#.function").Array() {
			functions = append(functions, object{"name": f.Get("name").Str, "parameters": json.RawMessage(f.Get("parameters").Raw)})
		}
		var choice any
		switch body.Get("tool_choice").Str {
		case "REQUIRED":
			choice = "required"
		case "NONE":
			choice = "none"
		}
		withTools(request, functions, choice)
		if schema := body.Get("response_format.json_schema"); schema.Exists() {
			request["response_format"] = schemaFormat(schema.Raw)
		}
		if limit := body.Get("max_tokens"); limit.Exists() {
			request["max_tokens"] = limit.Int()
		}
		if body.Get("thinking.type").Str == "enabled" {
			request["reasoning_effort"] = "low"
		}
		return request
	},
	object: func(c completion) object {
		var content []object
		if c.reasoning != "" {
			content = append(content, object{"type": "thinking", "thinking": c.reasoning})
		}
		if c.text != "" {
			content = append(content, object{"type": "text", "text": c.text})
		}
		message := object{"role": "assistant", "content": content}
		if len(c.calls) > 0 {
			var calls []json.RawMessage
			for _, call := range c.calls {
				calls = append(calls, json.RawMessage(call.Raw))
			}
			message["tool_calls"] = calls
		}
		return object{"id": c.id, "message": message, "finish_reason": cohereReason(c), "usage": cohereUsage(c)}
	},
	stream: func(w http.ResponseWriter, c completion) {
		var events []object
		send := func(kind string, index int, message object) {
			events = append(events, object{"type": kind, "index": index, "delta": object{"message": message}})
		}
		index := 0
		sendContent := func(kind, text string) {
			if text == "" {
				return
			}
			send("content-start", index, object{"content": object{"type": kind, kind: ""}})
			for _, piece := range pieces(text) {
				send("content-delta", index, object{"content": object{kind: piece}})
			}
			events = append(events, object{"type": "content-end", "index": index})
			index++
		}
		events = append(events, object{"type": "message-start", "id": c.id, "delta": object{"message": object{"role": "assistant"}}})
		sendContent("thinking", c.reasoning)
		sendContent("text", c.text)
		for i, call := range c.calls {
			send("tool-call-start", i, object{"tool_calls": chatCall(call.Get("id").Str, call.Get("function.name").Str, "")})
			send("tool-call-delta", i, object{"tool_calls": object{"function": object{"arguments": call.Get("function.arguments").Str}}})
			events = append(events, object{"type": "tool-call-end", "index": i})
		}
		writeEvents(w, true, append(events, object{"type": "message-end", "delta": object{"finish_reason": cohereReason(c), "usage": cohereUsage(c)}})...)
	},
}

func cohereReason(c completion) string { return c.reason("MAX_TOKENS", "TOOL_CALL", "COMPLETE") }

func cohereUsage(c completion) object {
	tokens := object{"input_tokens": c.input, "output_tokens": c.output}
	return object{"billed_units": tokens, "tokens": tokens}
}
