package anthropic

import (
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	body := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
	}
	plugintest.Errors(t, Provider{}, []plugintest.ErrorCase{
		{Status: 400, Body: body("invalid_request_error", "max_tokens: Field required"), Want: plugins.Error{Status: 400, Type: "invalid_request_error", Message: "max_tokens: Field required"}},
		{Status: 400, Body: body("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
			Want: plugins.Error{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded", Message: "prompt is too long: 210000 tokens > 200000 maximum"}},
		{Status: 401, Body: body("authentication_error", "invalid x-api-key"), Want: plugins.Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "invalid x-api-key"}},
		{Status: 403, Body: body("permission_error", "no"), Want: plugins.Error{Status: 403, Type: "invalid_request_error", Code: "permission_denied", Message: "no"}},
		{Status: 404, Body: body("not_found_error", "model: x"), Want: plugins.Error{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Message: "model: x"}},
		{Status: 413, Body: body("request_too_large", "big"), Want: plugins.Error{Status: 413, Type: "invalid_request_error", Code: "request_too_large", Message: "big"}},
		{Status: 429, Body: body("rate_limit_error", "slow"), Want: plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow"}},
		{Status: 500, Body: body("api_error", "oops"), Want: plugins.Error{Status: 500, Type: "server_error", Code: "server_error", Message: "oops"}},
		{Status: 529, Body: body("overloaded_error", "Overloaded"), Want: plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "Overloaded"}},
		{Status: 529, Body: body("api_error", "Overloaded"), Want: plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "Overloaded"}},
		{Status: 529, Body: "", Want: plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "The provider answered with status 529."}},
		{Status: 502, Body: "<html>", Want: plugins.Error{Status: 502, Type: "server_error", Code: "server_error", Message: "The provider answered with status 502."}},
		{Status: 422, Body: body("of_the_future", "?"), Want: plugins.Error{Status: 422, Type: "invalid_request_error", Message: "?"}},
	}...)
}

// Where Anthropic says when its limits are full again, it may not say how long to
// wait.
// A client that obeys no status of its own is told by a header not to ask again.
func TestQuotaIsFinal(t *testing.T) {
	for _, test := range []struct {
		name, value string
		want        bool
	}{
		{"X-Should-Retry", "false", true},
		{"X-Should-Retry", "true", false},
		{"anthropic-ratelimit-unified-status", "rejected", true},
		{"anthropic-ratelimit-unified-status", "allowed_warning", false},
	} {
		r := plugintest.Response(429, `{"type":"error","error":{"type":"rate_limit_error","message":"weekly quota"}}`)
		r.Header.Set(test.name, test.value)
		if got := (Provider{}).Error(r).Final; got != test.want {
			t.Errorf("%s: %s: final %v, want %v", test.name, test.value, got, test.want)
		}
	}
}

func TestRateLimits(t *testing.T) {
	const soon, later, past = "2026-11-20T10:00:07Z", "2026-11-20T10:01:00Z", "2026-11-20T09:00:00Z"
	for name, test := range map[string]struct {
		status int
		header map[string]string
		want   time.Duration
	}{
		"used up":       {429, map[string]string{"Requests-Remaining": "0", "Requests-Reset": soon}, 7 * time.Second},
		"all used up":   {429, map[string]string{"Input-Tokens-Remaining": "0", "Input-Tokens-Reset": later, "Tokens-Remaining": "0", "Tokens-Reset": soon}, time.Minute},
		"left":          {429, map[string]string{"Requests-Remaining": "3", "Requests-Reset": soon}, 0},
		"over":          {429, map[string]string{"Requests-Remaining": "0", "Requests-Reset": past}, 0},
		"nonsense":      {429, map[string]string{"Requests-Remaining": "0", "Requests-Reset": "soon"}, 0},
		"another error": {500, map[string]string{"Requests-Remaining": "0", "Requests-Reset": soon}, 0},
	} {
		r := plugintest.Response(test.status, "")
		r.Header.Set("Date", "Fri, 20 Nov 2026 10:00:00 GMT")
		for key, value := range test.header {
			r.Header.Set("anthropic-ratelimit-"+key, value)
		}
		if got := (Provider{}).Error(r).RetryAfter; got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
		r.Header.Set("Retry-After", "3")
		if got := (Provider{}).Error(r).RetryAfter; got != 3*time.Second {
			t.Errorf("%s: got %v, want what Retry-After says", name, got)
		}
	}
}
