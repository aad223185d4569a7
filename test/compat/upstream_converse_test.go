package compat

import (
	"encoding/json"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"
)

// converse is the format of Amazon Bedrock.
var converse = format{
	request: func(body gjson.Result) object {
		var messages []object
		for _, s := range body.Get("system").Array() {
			messages = append(messages, chatText("system", s.Get("text").Str))
		}
		for _, m := range body.Get("messages").Array() {
			messages = append(messages, converseMessages(m)...)
		}
		request := object{"messages": messages}
		var functions []object
		for _, t := range body.Get("toolConfig.tools.#.toolSpec").Array() {
			functions = append(functions, object{"name": t.Get("name").Str, "parameters": json.RawMessage(t.Get("inputSchema.json").Raw)})
		}
		withTools(request, functions, converseChoice(body))
		if schema := body.Get("outputConfig.textFormat.structure.jsonSchema.schema"); schema.Exists() {
			request["response_format"] = schemaFormat(schema.Str)
		}
		if limit := body.Get("inferenceConfig.maxTokens"); limit.Exists() {
			request["max_tokens"] = limit.Int()
		}
		thinking := body.Get("additionalModelRequestFields.thinking.type").Str
		if thinking == "enabled" || thinking == "adaptive" {
			request["reasoning_effort"] = "low"
		}
		return request
	},
	object: func(c completion) object {
		var content []object
		if c.reasoning != "" {
			content = append(content, object{"reasoningContent": object{"reasoningText": object{"text": c.reasoning, "signature": "c2lnbmVk"}}})
		}
		if c.text != "" {
			content = append(content, object{"text": c.text})
		}
		for _, call := range c.calls {
			content = append(content, object{"toolUse": object{
				"toolUseId": call.Get("id").Str, "name": call.Get("function.name").Str, "input": json.RawMessage(call.Get("function.arguments").Str),
			}})
		}
		return object{
			"output":     object{"message": object{"role": "assistant", "content": content}},
			"stopReason": converseReason(c), "usage": converseUsage(c), "metrics": object{"latencyMs": 1},
		}
	},
	stream: func(w http.ResponseWriter, c completion) {
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		encoder := eventstream.NewEncoder()
		send := func(kind string, payload object) {
			m := eventstream.Message{Payload: mustJSON(payload)}
			m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
			m.Headers.Set(":message-type", eventstream.StringValue("event"))
			m.Headers.Set(":event-type", eventstream.StringValue(kind))
			if err := encoder.Encode(w, m); err != nil { // the gateway has gone
				return
			}
		}
		block := 0
		sendBlock := func(start object, deltas ...object) {
			if start != nil {
				send("contentBlockStart", object{"contentBlockIndex": block, "start": start})
			}
			for _, delta := range deltas {
				send("contentBlockDelta", object{"contentBlockIndex": block, "delta": delta})
			}
			send("contentBlockStop", object{"contentBlockIndex": block})
			block++
		}
		send("messageStart", object{"role": "assistant"})
		if c.reasoning != "" {
			sendBlock(nil, object{"reasoningContent": object{"text": c.reasoning}}, object{"reasoningContent": object{"signature": "c2lnbmVk"}})
		}
		if c.text != "" {
			var deltas []object
			for _, piece := range pieces(c.text) {
				deltas = append(deltas, object{"text": piece})
			}
			sendBlock(nil, deltas...)
		}
		for _, call := range c.calls {
			sendBlock(object{"toolUse": object{"toolUseId": call.Get("id").Str, "name": call.Get("function.name").Str}},
				object{"toolUse": object{"input": call.Get("function.arguments").Str}})
		}
		send("messageStop", object{"stopReason": converseReason(c)})
		send("metadata", object{"usage": converseUsage(c), "metrics": object{"latencyMs": 1}})
	},
}

func converseMessages(m gjson.Result) (messages []object) {
	var calls, parts []object
	for _, block := range m.Get("content").Array() {
		use, result := block.Get("toolUse"), block.Get("toolResult")
		switch {
		case use.Exists():
			calls = append(calls, chatCall(use.Get("toolUseId").Str, use.Get("name").Str, use.Get("input").Raw))
		case result.Exists():
			messages = append(messages, object{"role": "tool", "tool_call_id": result.Get("toolUseId").Str, "content": result.Get("content.0.text").Str})
		case block.Get("image").Exists():
			parts = append(parts, chatImage)
		case block.Get("text").Str != "":
			parts = append(parts, object{"type": "text", "text": block.Get("text").Str})
		}
	}
	if len(parts) == 0 && len(calls) == 0 {
		return messages
	}
	message := object{"role": m.Get("role").Str, "content": parts}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return append(messages, message)
}

// converseChoice is that of Converse, or where only Claude has the words for it, that
// of its own.
func converseChoice(body gjson.Result) any {
	choice, own := body.Get("toolConfig.toolChoice"), body.Get("additionalModelRequestFields.tool_choice")
	name := choice.Get("tool.name").Str + own.Get("name").Str
	switch {
	case name != "":
		return object{"type": "function", "function": object{"name": name}}
	case choice.Get("any").Exists() || own.Get("type").Str == "any":
		return "required"
	}
	return nil
}

func converseReason(c completion) string { return c.reason("max_tokens", "tool_use", "end_turn") }

func converseUsage(c completion) object {
	return object{"inputTokens": c.input, "outputTokens": c.output, "totalTokens": c.input + c.output}
}
