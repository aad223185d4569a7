package llmgateway

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// headWriter runs a function when the answer begins, as the directive `header`
// does.
type headWriter struct {
	*httptest.ResponseRecorder
	begin func()
}

func (w headWriter) WriteHeader(status int) {
	w.begin()
	w.ResponseRecorder.WriteHeader(status)
}

// The placeholders tell whose call it is before the answer begins, and in the
// end what it came to: the attempt that answered.
func TestPlaceholders(t *testing.T) {
	for name, c := range map[string]struct {
		body, before string
		status       int
		after        string
	}{
		"answered": {`{"model":"one/m","input":"hi"}`, " default one/m u-1", 200, "m-1 8 complete"},
		"stream":   {`{"model":"one/m","input":"hi","stream":true}`, " default one/m u-1", 200, "m-1 8 complete"},
		"refused":  {`{"model":"mystery","input":"hi"}`, " default mystery u-1", 404, "mystery  complete"},
		"no JSON":  {`{`, " default  u-1", 400, "  complete"},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, map[string][]upstream{"one": {status(500), hello}})
			repl := caddy.NewEmptyReplacer()
			r := httptest.NewRequest("POST", "/v1/responses", strings.NewReader(c.body))
			r = r.WithContext(context.WithValue(r.Context(), caddy.ReplacerCtxKey, repl))
			r.Header.Set("Authorization", "Bearer k")
			r.Header.Set("Service-User-Id", "u-1")
			w := headWriter{ResponseRecorder: httptest.NewRecorder()}
			w.begin = func() {
				got := repl.ReplaceAll("{http.llm.id} {http.llm.org} {http.llm.request_model} {http.llm.user_id}", "")
				if want := w.Header().Get("Service-Id") + c.before; got != want {
					t.Errorf("before the answer %q, want %q", got, want)
				}
			}
			if err := s.handler.ServeHTTP(w, r, nil); err != nil {
				t.Fatal(err)
			}
			got := repl.ReplaceAll("{http.llm.model} {http.llm.total_tokens} {http.llm.end_state}", "")
			if w.Code != c.status || got != c.after {
				t.Errorf("%d, in the end %q; want %d, %q", w.Code, got, c.status, c.after)
			}
			if got := repl.ReplaceAll("{http.llm.id}", ""); got != w.Header().Get("Service-Id") {
				t.Errorf("in the end the id is %q", got)
			}
		})
	}
}
