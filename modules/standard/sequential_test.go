//go:build !race

package standard

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/weirhq/weir/modules/llmadmin"
)

// Names that callers make up are no labels of metrics.
func TestNamesAreNoLabels(t *testing.T) {
	s := serve(t)
	s.send("POST", "/logged/chat/completions", "walker-root", jsonType, []byte(`{"model":"gpt-4o-mini","messages":[{"role":"user","content":"a"}]}`))
	lines := func() int {
		all := s.send("GET", "/metrics", "walker-root", jsonType, nil, "Accept-Encoding", "identity").body
		// Caddy looks at the configured upstreams every 10 seconds, and has a line for each since.
		return strings.Count(all, "\n") - strings.Count(all, "\ncaddy_reverse_proxy_upstreams_healthy")
	}
	for _, r := range routes(t) {
		if !r.isLane() {
			continue
		}
		call := func(n int) {
			for _, body := range s.bodies("label") {
				body = bytes.ReplaceAll(body, []byte("echo-1"), fmt.Appendf(nil, "gpt-4o-mini@%d", n))
				body = bytes.ReplaceAll(body, []byte("gpt-4o-mini\""), fmt.Appendf(nil, "gpt-4o-mini@%d\"", n))
				body = bytes.ReplaceAll(body, []byte(`"attributes":[`), fmt.Appendf(nil, `"attributes":[{"key":"gen_ai.provider.name","value":{"stringValue":"p%d"}},{"key":"gen_ai.request.model","value":{"stringValue":"m%d"}},`, n, n))
				s.send(r.Method, s.path(r), "walker-root", typeOf(body), body)
			}
		}
		call(0)
		before := lines()
		for n := range 3 {
			call(n + 1)
		}
		if more := lines() - before; more > 0 {
			t.Errorf("%s: %d lines of metrics for three names", r, more)
		}
	}
}

// No body makes any route take more memory than a bound.
func TestBombsAreRefused(t *testing.T) {
	s := serve(t)
	all := bombs(t)
	logged := false
	for _, r := range routes(t) {
		if !r.takesBody() || r.Path == "/v1/files" { // which passes a file on as it comes
			continue
		}
		passes := r.handler == "llm_log" // whose routes differ by their dialect alone
		if passes && logged {
			continue
		}
		logged = logged || passes
		for name, bomb := range all {
			var a answer
			took := allocated(func() {
				body, header := bomb()
				a = s.stream(r.Method, s.path(r), "walker-root", jsonType, body, header...)
			})
			if *full {
				s.attack(r, name, bomb)
			}
			if took > mostAllocated || a.status >= 500 && a.status != http.StatusServiceUnavailable {
				t.Errorf("%s: %s takes %d MiB, %d %.200s", r, name, took>>20, a.status, a.body)
			}
			refused := a.status == http.StatusRequestEntityTooLarge || r.handler == paid && a.status == http.StatusUnsupportedMediaType
			if r.isLane() && !passes && name == "gzip" && !refused && !strings.HasSuffix(r.Path, "cancel") {
				t.Errorf("%s: a body of 640 MiB is answered with %d %.200s", r, a.status, a.body)
			}
		}
	}
	for _, r := range new(llmadmin.API).Routes() {
		for name, bomb := range all {
			body, header := bomb()
			request := httptest.NewRequest(http.MethodPost, r.Pattern, body)
			for i := 0; i < len(header); i += 2 {
				request.Header.Set(header[i], header[i+1])
			}
			if took := allocated(func() { _ = r.Handler.ServeHTTP(httptest.NewRecorder(), request) }); took > mostAllocated {
				t.Errorf("the admin route %s: %s takes %d MiB", r.Pattern, name, took>>20)
			}
		}
	}
}
