package anthropic

import (
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/plugintest"
)

func TestErrors(t *testing.T) {
	plugintest.Errors(t, Provider{})
	body := func(kind, message string) string {
		return `{"type":"error","error":{"type":"` + kind + `","message":"` + message + `"},"request_id":"req_1"}`
	}
	for _, test := range []struct {
		status int
		body   string
		want   plugins.Error
	}{
		{400, body("invalid_request_error", "max_tokens: Field required"), plugins.Error{Status: 400, Type: "invalid_request_error", Message: "max_tokens: Field required"}},
		{400, body("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
			plugins.Error{Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded", Message: "prompt is too long: 210000 tokens > 200000 maximum"}},
		{401, body("authentication_error", "invalid x-api-key"), plugins.Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "invalid x-api-key"}},
		{403, body("permission_error", "no"), plugins.Error{Status: 403, Type: "invalid_request_error", Code: "permission_denied", Message: "no"}},
		{404, body("not_found_error", "model: x"), plugins.Error{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Message: "model: x"}},
		{413, body("request_too_large", "big"), plugins.Error{Status: 413, Type: "invalid_request_error", Code: "request_too_large", Message: "big"}},
		{429, body("rate_limit_error", "slow"), plugins.Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "slow"}},
		{500, body("api_error", "oops"), plugins.Error{Status: 500, Type: "server_error", Code: "server_error", Message: "oops"}},
		{529, body("overloaded_error", "Overloaded"), plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "Overloaded"}},
		{529, "", plugins.Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "The provider answered with status 529."}},
		{502, "<html>", plugins.Error{Status: 502, Type: "server_error", Code: "server_error", Message: "The provider answered with status 502."}},
		{422, body("of_the_future", "?"), plugins.Error{Status: 422, Type: "invalid_request_error", Message: "?"}},
	} {
		if got := (Provider{}).Error(plugintest.Response(test.status, test.body)); *got != test.want {
			t.Errorf("%d %s:\ngot  %+v\nwant %+v", test.status, test.body, *got, test.want)
		}
	}
}

// Where Anthropic says when its limits are full again, it may not say how long to
// wait.
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
