package chat

import (
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	plugintest.Errors(t, For("openai"), []plugintest.ErrorCase{
		{Status: 400, Body: `{"error":{"message":"No.","type":"invalid_request_error","param":"messages[0].role","code":"invalid_value"}}`, // OpenAI
			Want: plugins.Error{Status: 400, Type: "invalid_request_error", Param: "messages[0].role", Code: "invalid_value", Message: "No."}},
		{Status: 401, Body: `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":null}}`, // no key
			Want: plugins.Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "No."}},
		{Status: 400, Body: `{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"f("}}`, // Groq's call
			Want: plugins.Error{Status: 400, Type: "invalid_request_error", Code: "tool_use_failed", Message: "Failed to call a function."}},
		{Status: 429, Body: `{"error":{"code":429,"message":"Provider returned error","metadata":{"provider_name":"G","raw":"m is rate-limited"}}}`, // OpenRouter
			Want: plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "Provider returned error: m is rate-limited"}},
		{Status: 402, Body: `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, // DeepSeek's balance
			Want: plugins.Error{Status: 402, Type: "unknown_error", Code: "invalid_request_error", Message: "Insufficient Balance"}},
		{Status: 400, Body: `{"object":"error","message":"This model's maximum context length is 8192 tokens.","type":"BadRequestError","param":null,"code":400}`, // vLLM
			Want: plugins.Error{Status: 400, Type: "BadRequestError", Code: "context_length_exceeded", Message: "This model's maximum context length is 8192 tokens."}},
		{Status: 400, Body: `{"error":{"code":400,"message":"Too large.","type":"exceed_context_size_error","n_prompt_tokens":9,"n_ctx":8}}`, // llama.cpp
			Want: plugins.Error{Status: 400, Type: "exceed_context_size_error", Code: "context_length_exceeded", Message: "Too large."}},
		{Status: 400, Body: `{"object":"error","message":"Not the same number of calls.","type":"invalid_request_message_order","param":null,"code":"3230"}`, // Mistral
			Want: plugins.Error{Status: 400, Type: "invalid_request_message_order", Code: "3230", Message: "Not the same number of calls."}},
		{Status: 422, Body: `{"detail":[{"loc":["body","n"],"msg":"bad"}]}`, // Mistral's gateway
			Want: plugins.Error{Status: 422, Type: "invalid_request_error", Message: `[{"loc":["body","n"],"msg":"bad"}]`}},
		{Status: 500, Body: `{"error":"model runner has stopped"}`, // a string
			Want: plugins.Error{Status: 500, Type: "server_error", Code: "server_error", Message: "model runner has stopped"}},
		{Status: 503, Body: `[{"error":{"code":503,"message":"Busy","status":"UNAVAILABLE"}}]`, // in an array
			Want: plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "Busy"}},
		{Status: 502, Body: `<html>`, // not JSON
			Want: plugins.Error{Status: 502, Type: "server_error", Code: "server_error", Message: "The provider answered with status 502."}},
		{Status: 404, Body: ``, // not found
			Want: plugins.Error{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Message: "The provider answered with status 404."}},
	}...)
}
