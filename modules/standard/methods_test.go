package standard

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// A method that a path does not have is refused in JSON, with the methods that the path has.
func TestMethodsThatARouteLacks(t *testing.T) {
	s := serve(t)
	s.administer()
	mine, tried := s.logIn("walker-root"), make(map[string]bool)
	all := routes(t)
	for _, r := range all {
		path := s.path(r)
		if tried[path] || strings.Contains(r.Path, "...}") || r.handler == "llm_log" || r.handler == paid {
			continue // a provider refuses what comes through a proxy
		}
		tried[path] = true
		var has, served []string // the methods of the path, and those of others like it, such as /v1/keys/{id}
		for _, other := range all {
			switch {
			case other.handler != r.handler || other.Socket:
			case other.Path == r.Path:
				has = append(has, other.Method)
				fallthrough
			case other.Matches(path):
				served = append(served, other.Method)
			}
		}
		for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodPost} {
			if slices.Contains(served, method) {
				continue
			}
			req, err := http.NewRequestWithContext(t.Context(), method, s.url+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"Authorization": {"Bearer walker-root"}, mine[0]: {mine[1]}}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			var body strings.Builder
			_ = resp.Write(&body)
			resp.Body.Close()
			_, text, _ := strings.Cut(body.String(), "\r\n\r\n")
			if resp.StatusCode != http.StatusMethodNotAllowed || !gjson.Get(text, "error").Exists() && !gjson.Get(text, "message").Exists() {
				t.Errorf("%s %s: %d %q", method, path, resp.StatusCode, text)
			}
			allowed := strings.Split(resp.Header.Get("Allow"), ", ")
			for _, m := range has {
				if !slices.Contains(allowed, m) {
					t.Errorf("%s %s: it has %s, and allows %q", method, path, has, allowed)
				}
			}
		}
	}
	if len(tried) < 100 {
		t.Errorf("%d paths prove nothing", len(tried))
	}
}
