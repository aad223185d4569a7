package compat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// The fields that Open Responses requires, and their types: "?" is one that may be null.
var (
	responseFields = map[string]string{
		"id": "string", "object": "string", "created_at": "number", "completed_at": "number?", "status": "string",
		"incomplete_details": "object?", "model": "string", "previous_response_id": "string?", "instructions": "string|array?",
		"output": "array", "error": "object?", "tools": "array", "tool_choice": "string|object", "truncation": "string",
		"parallel_tool_calls": "boolean", "text": "object", "text.format.type": "string", "top_p": "number",
		"presence_penalty": "number", "frequency_penalty": "number", "top_logprobs": "number", "temperature": "number",
		"reasoning": "object?", "user": "string?", "usage": "object?", "max_output_tokens": "number?", "max_tool_calls": "number?",
		"store": "boolean", "background": "boolean", "service_tier": "string", "metadata": "object",
		"safety_identifier": "string?", "prompt_cache_key": "string?",
	}
	usageFields = map[string]string{
		"input_tokens": "number", "output_tokens": "number", "total_tokens": "number",
		"input_tokens_details.cached_tokens": "number", "output_tokens_details.reasoning_tokens": "number",
	}
	functionFields = map[string]string{
		"name": "string", "description": "string?", "parameters": "object?", "strict": "boolean?",
	}
	compactionFields = map[string]string{
		"id": "string", "object": "string", "output": "array", "created_at": "number", "usage": "object",
		"usage.input_tokens": "number", "usage.output_tokens": "number", "usage.total_tokens": "number",
	}
	itemFields = map[string]map[string]string{
		"message":       {"id": "string", "status": "string", "role": "string", "content": "array"},
		"function_call": {"id": "string", "call_id": "string", "name": "string", "arguments": "string", "status": "string"},
		"reasoning":     {"id": "string", "summary": "array"},
		"output_text":   {"text": "string", "annotations": "array"},
		"refusal":       {"refusal": "string"},
	}
)

// checkSchema holds a response against the schema.
func checkSchema(response gjson.Result) error {
	if err := checkFields(response, responseFields); err != nil {
		return err
	}
	if usage := response.Get("usage"); usage.IsObject() {
		if err := checkFields(usage, usageFields); err != nil {
			return fmt.Errorf("usage: %w", err)
		}
	}
	for _, tool := range response.Get(`tools.#(type=="function")#`).Array() {
		if err := checkFields(tool, functionFields); err != nil {
			return fmt.Errorf("tools: %w", err)
		}
	}
	return checkItems(response.Get("output"))
}

func checkItems(items gjson.Result) error {
	for i, item := range items.Array() {
		for _, v := range slices.Concat([]gjson.Result{item}, item.Get("content").Array()) {
			if err := checkFields(v, itemFields[v.Get("type").Str]); err != nil {
				return fmt.Errorf("output[%d]: %s: %w", i, v.Get("type").Str, err)
			}
		}
		phase := item.Get("phase")
		if phase.Type != gjson.Null && phase.Str != "commentary" && phase.Str != "final_answer" {
			return fmt.Errorf("output[%d]: the phase is %s", i, phase.Raw)
		}
	}
	return nil
}

func checkFields(v gjson.Result, fields map[string]string) error {
	for name, types := range fields {
		field := v.Get(name)
		options, nullable := strings.CutSuffix(types, "?")
		if !field.Exists() || !slices.Contains(strings.Split(options, "|"), typeOf(field)) && !(nullable && field.Type == gjson.Null) {
			return fmt.Errorf("%s is %q, want %s", name, field.Raw, types)
		}
	}
	return nil
}

func typeOf(v gjson.Result) string {
	switch {
	case v.IsObject():
		return "object"
	case v.IsArray():
		return "array"
	case v.IsBool():
		return "boolean"
	}
	return strings.ToLower(v.Type.String())
}
