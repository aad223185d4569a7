package openai

import (
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	plugintest.Errors(t, Provider{}, []plugintest.ErrorCase{
		{Status: 400, Body: `{"error":{"message":"No.","type":"invalid_request_error","param":"input[0]","code":"invalid_value"}}`,
			Want: plugins.Error{Status: 400, Type: "invalid_request_error", Code: "invalid_value", Param: "input[0]", Message: "No."}},
		{Status: 429, Body: `{"error":{"message":"Slow.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`,
			Want: plugins.Error{Status: 429, Type: "requests", Code: "rate_limit_exceeded", Message: "Slow."}},
		{Status: 404, Body: `{"error":{"code":"DeploymentNotFound","message":"No deployment."}}`, // Azure
			Want: plugins.Error{Status: 404, Type: "invalid_request_error", Code: "DeploymentNotFound", Message: "No deployment."}},
		{Status: 402, Body: `{"error":{"code":402,"message":"No credits."},"user_id":"u"}`, // OpenRouter
			Want: plugins.Error{Status: 402, Type: "insufficient_quota", Code: "insufficient_quota", Message: "No credits."}},
		{Status: 400, Body: `{"code":"Client specified an invalid argument","error":"Argument not supported."}`, // xAI
			Want: plugins.Error{Status: 400, Type: "invalid_request_error", Code: "Client specified an invalid argument", Message: "Argument not supported."}},
		{Status: 400, Body: "event: error\ndata: {\"error\":{\"message\":\"No.\",\"type\":\"None\",\"param\":\"None\",\"code\":\"400\"}}\n\n", // LiteLLM
			Want: plugins.Error{Status: 400, Type: "invalid_request_error", Message: "No."}},
		{Status: 500, Body: `{"error":{"message":"No.","type":"None","param":"None","code":"None"}}`, // LiteLLM
			Want: plugins.Error{Status: 500, Type: "server_error", Code: "server_error", Message: "No."}},
		{Status: 502, Body: "<html>", Want: plugins.Error{Status: 502, Type: "server_error", Code: "server_error", Message: "The provider answered with status 502."}},
		{Status: 429, Body: "", Want: plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "The provider answered with status 429."}},
	}...)
}
