package apierror

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
)

func TestWrite(t *testing.T) {
	invalid := &plugins.Error{Status: 400, Type: "invalid_request_error", Code: "bad", Param: "input", Message: "No."}
	unavailable := &plugins.Error{Status: 503, Type: "server_error", Message: "Later."}
	overloaded := &plugins.Error{Status: 529, Type: "server_error", Message: "Later."}
	for name, c := range map[string]struct {
		dialect  plugins.Dialect
		err      *plugins.Error
		attempts []Attempt
		want     string
	}{
		"OpenAI": {plugins.Responses, invalid, nil, `{"error":{"message":"No.","type":"invalid_request_error","param":"input","code":"bad"}}`},
		"OpenAI, nothing but a type": {plugins.Chat, unavailable, nil,
			`{"error":{"message":"Later.","type":"server_error","param":null,"code":null}}`},
		"OpenAI, attempts": {plugins.Responses, unavailable, []Attempt{{"openai/m", 500, "No."}},
			`{"error":{"message":"Later.","type":"server_error","param":null,"code":null,"attempts":[{"target":"openai/m","status":500,"message":"No."}]}}`},
		"Anthropic":                {plugins.Messages, invalid, nil, `{"type":"error","error":{"type":"invalid_request_error","message":"No.","details":{"error_code":"bad"}}}`},
		"Anthropic is unavailable": {plugins.CountTokens, unavailable, nil, `{"type":"error","error":{"type":"api_error","message":"Later."}}`},
		"Anthropic is overloaded":  {plugins.Messages, overloaded, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Later."}}`},
		"Gemini":                   {plugins.GenerateContent, invalid, nil, `{"error":{"code":400,"message":"No.","status":"INVALID_ARGUMENT"}}`},
		"an unknown dialect":       {plugins.Unknown, invalid, nil, `{"error":{"message":"No.","type":"invalid_request_error","param":"input","code":"bad"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			if err := Write(w, c.dialect, c.err, c.attempts...); err != nil {
				t.Fatal(err)
			}
			if w.Code != c.err.Status || w.Body.String() != c.want || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

func TestHeaderOfErrors(t *testing.T) {
	w := httptest.NewRecorder()
	_ = Write(w, plugins.Chat, &plugins.Error{Status: 401})
	if w.Header().Get("Www-Authenticate") == "" {
		t.Error("a 401 does not say how to authenticate")
	}
	w = httptest.NewRecorder()
	_ = Write(w, plugins.Chat, &plugins.Error{Status: 429, RetryAfter: 1500 * time.Millisecond})
	if got := w.Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After: %s", got)
	}
}

// Codex obeys a 429 where other clients obey a 402, and clients of Messages a 529 where others obey a 503.
func TestTo(t *testing.T) {
	spent := &plugins.Error{Status: 402, Type: "insufficient_quota", Code: "insufficient_quota", Message: "Spent."}
	for originator, want := range map[string]int{"": 402, "codex_exec": 429, "codex_cli_rs": 429} {
		r := httptest.NewRequest("POST", "/v1/responses", nil)
		r.Header.Set("Originator", originator)
		w := httptest.NewRecorder()
		if err := Write(w, plugins.Responses, To(r, plugins.Responses, spent)); err != nil || w.Code != want || w.Header().Get("X-Should-Retry") != "false" {
			t.Errorf("%q: %d %v, want %d, %v", originator, w.Code, w.Header(), want, err)
		}
	}
	overloaded := plugins.Refused(http.StatusServiceUnavailable, "Later.")
	for d, want := range map[plugins.Dialect]int{plugins.Messages: 529, plugins.CountTokens: 529, plugins.Chat: 503} {
		if got := To(httptest.NewRequest("POST", "/", nil), d, overloaded); got.Status != want || got.AnthropicType() != "overloaded_error" {
			t.Errorf("%s: an overload is a %d", d, got.Status)
		}
	}
	if spent.Status != 402 || overloaded.Status != 503 {
		t.Error("the error that others get was changed")
	}
}
