package chat

import (
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	plugintest.Errors(t, For("openai"))
	for _, test := range []struct {
		name   string
		status int
		body   string
		want   plugins.Error
	}{
		{"OpenAI", 400, `{"error":{"message":"No.","type":"invalid_request_error","param":"messages[0].role","code":"invalid_value"}}`,
			plugins.Error{Status: 400, Type: "invalid_request_error", Param: "messages[0].role", Code: "invalid_value", Message: "No."}},
		{"no key", 401, `{"error":{"message":"No.","type":"invalid_request_error","param":null,"code":null}}`,
			plugins.Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "No."}},
		{"Groq's call", 400, `{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"f("}}`,
			plugins.Error{Status: 400, Type: "invalid_request_error", Code: "tool_use_failed", Message: "Failed to call a function."}},
		{"OpenRouter", 429, `{"error":{"code":429,"message":"Provider returned error","metadata":{"provider_name":"G","raw":"m is rate-limited"}}}`,
			plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "Provider returned error: m is rate-limited"}},
		{"DeepSeek's balance", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`,
			plugins.Error{Status: 402, Type: "unknown_error", Code: "invalid_request_error", Message: "Insufficient Balance"}},
		{"vLLM", 400, `{"object":"error","message":"This model's maximum context length is 8192 tokens.","type":"BadRequestError","param":null,"code":400}`,
			plugins.Error{Status: 400, Type: "BadRequestError", Code: "context_length_exceeded", Message: "This model's maximum context length is 8192 tokens."}},
		{"Mistral", 400, `{"object":"error","message":"Not the same number of calls.","type":"invalid_request_message_order","param":null,"code":"3230"}`,
			plugins.Error{Status: 400, Type: "invalid_request_message_order", Code: "3230", Message: "Not the same number of calls."}},
		{"Mistral's gateway", 422, `{"detail":[{"loc":["body","n"],"msg":"bad"}]}`,
			plugins.Error{Status: 422, Type: "invalid_request_error", Message: `[{"loc":["body","n"],"msg":"bad"}]`}},
		{"a string", 500, `{"error":"model runner has stopped"}`,
			plugins.Error{Status: 500, Type: "server_error", Code: "server_error", Message: "model runner has stopped"}},
		{"in an array", 503, `[{"error":{"code":503,"message":"Busy","status":"UNAVAILABLE"}}]`,
			plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "Busy"}},
		{"not JSON", 502, `<html>`,
			plugins.Error{Status: 502, Type: "server_error", Code: "server_error", Message: "The provider answered with status 502."}},
		{"not found", 404, ``,
			plugins.Error{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Message: "The provider answered with status 404."}},
	} {
		if got := For("openai").Error(plugintest.Response(test.status, test.body)); *got != test.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.name, *got, test.want)
		}
	}
}
