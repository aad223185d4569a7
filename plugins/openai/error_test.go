package openai

import (
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	plugintest.Errors(t, Provider{})
	for _, test := range []struct {
		status int
		body   string
		want   plugins.Error
	}{
		{400, `{"error":{"message":"No.","type":"invalid_request_error","param":"input[0]","code":"invalid_value"}}`,
			plugins.Error{Status: 400, Type: "invalid_request_error", Code: "invalid_value", Param: "input[0]", Message: "No."}},
		{429, `{"error":{"message":"Slow.","type":"requests","param":null,"code":"rate_limit_exceeded"}}`,
			plugins.Error{Status: 429, Type: "requests", Code: "rate_limit_exceeded", Message: "Slow."}},
		{404, `{"error":{"code":"DeploymentNotFound","message":"No deployment."}}`, // Azure
			plugins.Error{Status: 404, Type: "invalid_request_error", Code: "DeploymentNotFound", Message: "No deployment."}},
		{402, `{"error":{"code":402,"message":"No credits."},"user_id":"u"}`, // OpenRouter
			plugins.Error{Status: 402, Type: "insufficient_quota", Code: "insufficient_quota", Message: "No credits."}},
		{400, `{"code":"Client specified an invalid argument","error":"Argument not supported."}`, // xAI
			plugins.Error{Status: 400, Type: "invalid_request_error", Code: "Client specified an invalid argument", Message: "Argument not supported."}},
		{502, "<html>", plugins.Error{Status: 502, Type: "server_error", Code: "server_error", Message: "The provider answered with status 502."}},
		{429, "", plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "The provider answered with status 429."}},
	} {
		if got := (Provider{}).Error(plugintest.Response(test.status, test.body)); *got != test.want {
			t.Errorf("%d %s:\ngot  %+v\nwant %+v", test.status, test.body, *got, test.want)
		}
	}
}
