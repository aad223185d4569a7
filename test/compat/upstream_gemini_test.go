package compat

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"
)

// generateContent is the format of Gemini and Vertex AI.
var generateContent = format{
	request: func(body gjson.Result) object {
		messages := []object{chatText("system", geminiText(body.Get("systemInstruction.parts")))}
		for _, content := range body.Get("contents").Array() {
			messages = append(messages, geminiMessages(content)...)
		}
		request := object{"messages": messages}
		var functions []object
		for _, f := range body.Get("tools.#.functionDeclarations|@flatten").Array() {
			function := object{"name": f.Get("name").Str}
			if schema := f.Get("parametersJsonSchema"); schema.Exists() {
				function["parameters"] = json.RawMessage(schema.Raw)
			}
			functions = append(functions, function)
		}
		withTools(request, functions, geminiChoice(body.Get("toolConfig.functionCallingConfig")))
		config := body.Get("generationConfig")
		if schema := config.Get("responseJsonSchema"); schema.Exists() {
			request["response_format"] = schemaFormat(schema.Raw)
		}
		if limit := config.Get("maxOutputTokens"); limit.Exists() {
			request["max_tokens"] = limit.Int()
		}
		if config.Get("thinkingConfig.includeThoughts").Bool() {
			request["reasoning_effort"] = "low"
		}
		return request
	},
	object: func(c completion) object {
		return geminiPiece(c, geminiParts(c, func(text string) []string { return []string{text} }), true)
	},
	stream: func(w http.ResponseWriter, c completion) {
		var events []object
		parts := geminiParts(c, pieces)
		for i, part := range parts {
			events = append(events, geminiPiece(c, []object{part}, i == len(parts)-1))
		}
		writeEvents(w, false, events...)
	},
}

func geminiText(parts gjson.Result) string {
	var b strings.Builder
	for _, part := range parts.Array() {
		b.WriteString(part.Get("text").Str)
	}
	return b.String()
}

// geminiMessages are what a content comes to: results of functions are messages of
// their own.
func geminiMessages(content gjson.Result) (messages []object) {
	var calls, parts []object
	for _, part := range content.Get("parts").Array() {
		call, result := part.Get("functionCall"), part.Get("functionResponse")
		switch {
		case call.Exists():
			calls = append(calls, chatCall(call.Get("id").Str, call.Get("name").Str, call.Get("args").Raw))
		case result.Exists():
			output := result.Get("response.output")
			if !output.Exists() {
				output = result.Get("response")
			}
			messages = append(messages, object{"role": "tool", "tool_call_id": result.Get("id").Str, "content": output.String()})
		case part.Get("inlineData").Exists() || part.Get("fileData").Exists():
			parts = append(parts, chatImage)
		case !part.Get("thought").Bool() && part.Get("text").Str != "":
			parts = append(parts, object{"type": "text", "text": part.Get("text").Str})
		}
	}
	role := "user"
	if content.Get("role").Str == "model" {
		role = "assistant"
	}
	if len(parts) == 0 && len(calls) == 0 {
		return messages
	}
	message := object{"role": role, "content": parts}
	if calls != nil {
		message["tool_calls"] = calls
	}
	return append(messages, message)
}

func geminiChoice(config gjson.Result) any {
	names := config.Get("allowedFunctionNames").Array()
	switch mode := config.Get("mode").Str; {
	case mode == "NONE":
		return "none"
	case mode == "ANY" && len(names) == 1:
		return object{"type": "function", "function": object{"name": names[0].Str}}
	case mode == "ANY":
		return "required"
	}
	return nil
}

func geminiParts(c completion, cut func(string) []string) (parts []object) {
	if c.reasoning != "" {
		for _, piece := range cut(c.reasoning) {
			parts = append(parts, object{"text": piece, "thought": true})
		}
	}
	if c.text != "" {
		for _, piece := range cut(c.text) {
			parts = append(parts, object{"text": piece})
		}
	}
	for i, call := range c.calls {
		part := object{"functionCall": object{
			"id": call.Get("id").Str, "name": call.Get("function.name").Str, "args": json.RawMessage(call.Get("function.arguments").Str),
		}}
		if i == 0 { // the others of a turn have none
			part["thoughtSignature"] = "c2lnbmVk"
		}
		parts = append(parts, part)
	}
	return parts
}

func geminiPiece(c completion, parts []object, last bool) object {
	candidate := object{"content": object{"role": "model", "parts": parts}, "index": 0}
	piece := object{"candidates": []object{candidate}, "modelVersion": "gemini-3-flash", "responseId": c.id}
	if last {
		candidate["finishReason"] = c.reason("MAX_TOKENS", "STOP", "STOP")
		piece["usageMetadata"] = object{
			"promptTokenCount": c.input, "candidatesTokenCount": c.output - c.thinking,
			"thoughtsTokenCount": c.thinking, "totalTokenCount": c.input + c.output,
		}
	}
	return piece
}
