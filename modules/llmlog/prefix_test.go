package llmlog

import (
	"net/http"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// A prefix that the route did not take off is told once, with the fix, when the provider
// does not know the path.
func TestAPrefixThatStays(t *testing.T) {
	s := serve(t, options{config: object{"provider": "openai"}, handler: caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Path != "/v1/chat/completions" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, err := w.Write([]byte("{}"))
		return err
	})})
	told := func() int { return strings.Count(s.logs.String(), "handle_path /openai/*") }
	for _, path := range []string{"/v1/chat/completions", "/v1/nothing", "/openai-proxy/v1/chat/completions"} {
		if s.do("POST", path, "{}"); told() != 0 {
			t.Errorf("%s: %s", path, s.logs)
		}
	}
	s.do("POST", "/openai/v1/chat/completions", "{}")
	s.do("POST", "/openai/v1/chat/completions", "{}")
	if told() != 1 {
		t.Errorf("told %d times: %s", told(), s.logs)
	}
}
