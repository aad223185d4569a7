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
