package gemini

import (
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	plugintest.Errors(t, Provider{})
	body := func(status, message, details string) string {
		return `{"error":{"code":400,"message":"` + message + `","status":"` + status + `","details":[` + details + `]}}`
	}
	const (
		retry = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
		key   = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`
	)
	for _, test := range []struct {
		status int
		body   string
		want   plugins.Error
	}{
		{400, body("INVALID_ARGUMENT", "no", ""), plugins.Error{Status: 400, Type: "invalid_request_error", Message: "no"}},
		{400, body("INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8).", ""),
			plugins.Error{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded",
				Message: "The input token count (9) exceeds the maximum number of tokens allowed (8)."}},
		{400, body("INVALID_ARGUMENT", "API key not valid.", key), plugins.Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "API key not valid."}},
		{400, body("FAILED_PRECONDITION", "no", ""), plugins.Error{Status: 400, Type: "invalid_request_error", Message: "no"}},
		{401, body("UNAUTHENTICATED", "no", ""), plugins.Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "no"}},
		{403, body("PERMISSION_DENIED", "no", ""), plugins.Error{Status: 403, Type: "invalid_request_error", Code: "permission_denied", Message: "no"}},
		{404, body("NOT_FOUND", "no", ""), plugins.Error{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Message: "no"}},
		{429, body("RESOURCE_EXHAUSTED", "slow", retry),
			plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow", RetryAfter: 34500 * time.Millisecond}},
		{429, "[" + body("RESOURCE_EXHAUSTED", "slow", retry) + "]",
			plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow", RetryAfter: 34500 * time.Millisecond}},
		{500, body("INTERNAL", "oops", ""), plugins.Error{Status: 500, Type: "server_error", Code: "server_error", Message: "oops"}},
		{503, body("UNAVAILABLE", "busy", ""), plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "busy"}},
		{504, body("DEADLINE_EXCEEDED", "late", ""), plugins.Error{Status: 504, Type: "server_error", Code: "server_error", Message: "late"}},
		{503, "<html>", plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "The provider answered with status 503."}},
		{409, body("ABORTED", "?", ""), plugins.Error{Status: 409, Type: "invalid_request_error", Message: "?"}},
	} {
		if got := (Provider{}).Error(plugintest.Response(test.status, test.body)); *got != test.want {
			t.Errorf("%d %s:\ngot  %+v\nwant %+v", test.status, test.body, *got, test.want)
		}
	}
}
