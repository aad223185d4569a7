package plugintest

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// ErrorCase is an answer that is no success, and the error that it must become.
type ErrorCase struct {
	Status int
	Body   string
	Want   plugins.Error
}

// Errors checks what a provider makes of answers that are no success: each status,
// with bodies of every shape, must become an error with a status, a type and a
// message, and with the wait that the provider asks for. Each case must become the
// error that it wants.
func Errors(t *testing.T, p translate.Provider, cases ...ErrorCase) {
	t.Helper()
	for _, status := range []int{400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 529} {
		for _, body := range []string{"", "{", "null", "[]", `[{"error":{}}]`, "<html>", `{"error":"x"}`, `{"error":{"code":1}}`, `{"message":null}`} {
			r := Response(status, body)
			r.Header.Set("Retry-After", "7")
			e := p.Error(r)
			if e == nil || e.Status < 400 || e.Status > 599 || e.Message == "" || e.Type == "" {
				t.Errorf("%d %s: got %+v, want a status, type and message", status, body, e)
			}
			if e != nil && e.RetryAfter != 7*time.Second {
				t.Errorf("%d %s: RetryAfter is %v, want the 7s of Retry-After", status, body, e.RetryAfter)
			}
			if e != nil && !json.Valid(e.AppendObject(nil)) {
				t.Errorf("%d %s: %s is not JSON", status, body, e.AppendObject(nil))
			}
		}
	}
	for _, c := range cases {
		got := *p.Error(Response(c.Status, c.Body))
		if c.Want.Reported == "" { // which no client sees
			got.Reported = ""
		}
		if got != c.Want {
			t.Errorf("%d %s:\ngot  %+v\nwant %+v", c.Status, c.Body, got, c.Want)
		}
	}
}
