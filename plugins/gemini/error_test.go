package gemini

import (
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	body := func(status, message, details string) string {
		return `{"error":{"code":400,"message":"` + message + `","status":"` + status + `","details":[` + details + `]}}`
	}
	const (
		retry = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure"},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
		day   = `{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"},{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}`
		key   = `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`
	)
	plugintest.Errors(t, Provider{}, []plugintest.ErrorCase{
		{Status: 400, Body: body("INVALID_ARGUMENT", "no", ""), Want: plugins.Error{Status: 400, Type: "invalid_request_error", Message: "no"}},
		{Status: 400, Body: body("INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8).", ""),
			Want: plugins.Error{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded",
				Message: "The input token count (9) exceeds the maximum number of tokens allowed (8)."}},
		{Status: 400, Body: body("INVALID_ARGUMENT", "API key not valid.", key), Want: plugins.Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "API key not valid."}},
		{Status: 400, Body: body("FAILED_PRECONDITION", "no", ""), Want: plugins.Error{Status: 400, Type: "invalid_request_error", Message: "no"}},
		{Status: 401, Body: body("UNAUTHENTICATED", "no", ""), Want: plugins.Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "no"}},
		{Status: 403, Body: body("PERMISSION_DENIED", "no", ""), Want: plugins.Error{Status: 403, Type: "invalid_request_error", Code: "permission_denied", Message: "no"}},
		{Status: 404, Body: body("NOT_FOUND", "no", ""), Want: plugins.Error{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Message: "no"}},
		{Status: 429, Body: body("RESOURCE_EXHAUSTED", "slow", retry),
			Want: plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow", RetryAfter: 34500 * time.Millisecond}},
		{Status: 429, Body: body("RESOURCE_EXHAUSTED", "spent", day), Want: plugins.Error{Status: 429, Type: "rate_limit_error", Code: "insufficient_quota", Message: "spent"}},
		{Status: 429, Body: "[" + body("RESOURCE_EXHAUSTED", "slow", retry) + "]",
			Want: plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow", RetryAfter: 34500 * time.Millisecond}},
		{Status: 500, Body: body("INTERNAL", "oops", ""), Want: plugins.Error{Status: 500, Type: "server_error", Code: "server_error", Message: "oops"}},
		{Status: 503, Body: body("UNAVAILABLE", "busy", ""), Want: plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "busy"}},
		{Status: 504, Body: body("DEADLINE_EXCEEDED", "late", ""), Want: plugins.Error{Status: 504, Type: "server_error", Code: "server_error", Message: "late"}},
		{Status: 503, Body: "<html>", Want: plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "The provider answered with status 503."}},
		{Status: 409, Body: body("ABORTED", "?", ""), Want: plugins.Error{Status: 409, Type: "invalid_request_error", Message: "?"}},
	}...)
}
