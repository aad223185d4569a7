//go:build linux

package durability

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// TestResponsesSurviveAKill ends the process behind answers of the gateway. The
// responses must be had at once and afterwards, by who got them alone, and one that
// was deleted by nobody.
func TestResponsesSurviveAKill(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	upstream := httptest.NewServer(http.HandlerFunc(p.answerPrompt))
	t.Cleanup(upstream.Close)
	c := config{site: "llm_gateway", llm: fmt.Sprintf(`
		provider echo
		provider anthropic {
			base_url %s
			api_key x
		}
		org thief {
			key thief-key
		}`, upstream.URL)}
	w.start(c)
	responses := make(map[string]string) // by path
	for range 5 {
		for _, model := range []string{"claude-haiku-4-5", "echo/echo-1"} {
			status, body := w.as(t, key, "POST", "/v1/responses", fmt.Sprintf(`{"model":%q,"input":%q}`, model, p.call(messages).prompt))
			path := "/v1/responses/" + gjson.Get(body, "id").Str
			if status != http.StatusOK {
				t.Fatal(body)
			}
			if status, got := w.as(t, key, "GET", path, ""); status != http.StatusOK || got != body {
				t.Fatalf("%d %s\nwant %s", status, got, body)
			}
			responses[path] = body
		}
	}
	w.kill()
	w.start(c)
	deleted := ""
	for path, body := range responses {
		if status, got := w.as(t, key, "GET", path, ""); status != http.StatusOK || got != body {
			t.Errorf("%d %s\nwant %s", status, got, body)
		}
		goOn := fmt.Sprintf(`{"model":"claude-haiku-4-5","input":"and?","previous_response_id":%q}`, strings.TrimPrefix(path, "/v1/responses/"))
		if status, got := w.as(t, key, "POST", "/v1/responses", goOn); status != http.StatusOK {
			t.Errorf("going on: %d %s", status, got)
		}
		for _, method := range []string{"GET", "DELETE"} {
			if status, got := w.as(t, "thief-key", method, path, ""); status != http.StatusNotFound {
				t.Errorf("another organisation: %s: %d %s", method, status, got)
			}
		}
		if status, got := w.as(t, "thief-key", "POST", "/v1/responses", goOn); status != http.StatusBadRequest || gjson.Get(got, "error.code").Str != "previous_response_not_found" {
			t.Errorf("another organisation goes on: %d %s", status, got)
		}
		deleted = path
	}
	if status, got := w.as(t, key, "DELETE", deleted, ""); status != http.StatusOK {
		t.Errorf("%d %s", status, got)
	}
	w.kill()
	w.start(c)
	if status, got := w.as(t, key, "GET", deleted, ""); status != http.StatusNotFound {
		t.Errorf("deleted, and there again: %d %s", status, got)
	}
}
