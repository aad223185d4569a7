package cohere

import (
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	var cases []plugintest.ErrorCase
	for _, test := range []struct {
		status     int
		message    string
		kind, code string
	}{
		{400, "invalid request", "invalid_request_error", ""},
		{400, "too many tokens: 9 > 8", "invalid_request_error", "context_length_exceeded"},
		{401, "invalid api token", "invalid_request_error", "invalid_api_key"},
		{402, "pay", "insufficient_quota", "insufficient_quota"},
		{403, "no", "invalid_request_error", "permission_denied"},
		{404, "model 'x' not found", "invalid_request_error", "model_not_found"},
		{422, "bad field", "invalid_request_error", ""},
		{429, "slow down", "rate_limit_error", "rate_limit_exceeded"},
		{498, "blocked", "invalid_request_error", ""},
		{503, "later", "server_error", "overloaded"},
	} {
		cases = append(cases, plugintest.ErrorCase{
			Status: test.status,
			Body:   `{"id":"1","message":"` + test.message + `"}`,
			Want:   plugins.Error{Status: test.status, Type: test.kind, Code: test.code, Message: test.message},
		})
	}
	plugintest.Errors(t, Provider{}, cases...)
}
