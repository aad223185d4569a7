package plugins

import (
	"net/http"
	"testing"
	"time"
)

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		status  int
		message string
		want    Error
	}{
		{400, "No.", Error{Status: 400, Type: "invalid_request_error", Message: "No."}},
		{401, "No.", Error{Status: 401, Type: "invalid_request_error", Code: "invalid_api_key", Message: "No."}},
		{404, "", Error{Status: 404, Type: "invalid_request_error", Code: "model_not_found", Message: "The provider answered with status 404."}},
		{429, "No.", Error{Status: 429, Type: "rate_limit_error", Code: "rate_limit_exceeded", Message: "No."}},
		{500, "No.", Error{Status: 500, Type: "server_error", Code: "server_error", Message: "No."}},
		{503, "No.", Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "No."}},
		{529, "", Error{Status: 503, Type: "server_error", Code: "overloaded", Message: "The provider answered with status 529."}},
		{0, "", Error{Status: 502, Type: "server_error", Code: "server_error", Message: "The provider failed to generate the response."}},
		{0, "No.", Error{Status: 502, Type: "server_error", Code: "server_error", Message: "No."}},
		{302, "", Error{Status: 502, Type: "server_error", Code: "server_error", Message: "The provider answered with status 302."}},
	} {
		if got := Refused(test.status, test.message); *got != test.want {
			t.Errorf("%d %q:\ngot  %+v\nwant %+v", test.status, test.message, *got, test.want)
		}
	}
	Refused(401, "").Message = "changed"
	if got := Refused(401, "No.").Message; got != "No." {
		t.Errorf("one failure changes another: %q", got)
	}
}

func TestRetryAfter(t *testing.T) {
	for _, test := range []struct {
		seconds, milliseconds string
		want                  time.Duration
	}{
		{"", "", 0},
		{"7", "", 7 * time.Second},
		{"0.5", "", 500 * time.Millisecond},
		{"2", "1500", 1500 * time.Millisecond},
		{"7", "soon", 7 * time.Second},
		{"soon", "", 0},
		{"-1", "", 0},
		{"NaN", "", 0},
		{"1e300", "", 0},
	} {
		h := http.Header{"Retry-After": {test.seconds}, "Retry-After-Ms": {test.milliseconds}}
		if got := RetryAfter(h); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}

// A limit of a rate that is exhausted says when it is reset, in each vendor's form.
func TestUntilReset(t *testing.T) {
	for _, test := range []struct {
		header map[string]string
		want   time.Duration
	}{
		{map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "6m0s"}, 6 * time.Minute},
		{map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "7.66s", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "120ms"}, 7660 * time.Millisecond},
		{map[string]string{"X-Ratelimit-Remaining-Tokens": "5", "X-Ratelimit-Reset-Tokens": "6m0s"}, 0},
		{map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1790000012000"}, 12 * time.Second},
		{map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "1790000012"}, 12 * time.Second},
		{map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "12"}, 12 * time.Second},
		{map[string]string{"X-Ratelimit-Remaining": "0", "X-Ratelimit-Reset": "soon"}, 0},
		{map[string]string{"Anthropic-Ratelimit-Tokens-Remaining": "0", "Anthropic-Ratelimit-Tokens-Reset": "2026-09-21T14:13:50Z"}, 30 * time.Second},
	} {
		h := http.Header{"Date": {"Mon, 21 Sep 2026 14:13:20 GMT"}} // 1790000000 seconds since 1970
		for name, value := range test.header {
			h.Set(name, value)
		}
		if got := UntilReset(h); got != test.want {
			t.Errorf("%v: %v, want %v", test.header, got, test.want)
		}
	}
}
