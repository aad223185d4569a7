//go:build !race

package standard

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"
)

// While a file of the store is refused, what needs the file answers 503, and says which file it is and
// what to do.
func TestRefusedFilesAreNamed(t *testing.T) {
	administered := []string{"llm_control", "llm_query"}
	for file, key := range map[string]string{"control.db": "walker-root", "credits": "walker-capped", "erasures": "walker-root"} {
		t.Run(file, func(t *testing.T) {
			s := serve(t)
			secret := gjson.Get(s.send(http.MethodPost, "/v1/keys", "walker-root", jsonType, []byte(`{"name":"created","scopes":["query"]}`)).body, "data.secret").Str
			s.send(http.MethodPost, "/v1/erasures", "walker-root", jsonType, []byte(`{"filter":{"request_response_rmt":{"user_id":{"equals":"eve"}}},"what":"content"}`))
			s.send(http.MethodPost, "/v1/chat/completions", "walker-capped", jsonType, s.bodies("spent")["a call"])
			if err := caddy.Stop(); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(s.dir, "weir.db.segments", file)); err != nil {
				t.Fatal(err)
			}
			s.load(siteConfig, s.from)
			refused := 0
			ask := func(method, path, key, body string) {
				switch a := s.send(method, path, key, jsonType, []byte(body)); {
				case a.status < http.StatusInternalServerError:
				case a.status == http.StatusServiceUnavailable && strings.Contains(a.body, file+" is gone") && strings.Contains(a.body, "weir forget") && !strings.Contains(a.body, s.dir),
					a.status == http.StatusServiceUnavailable && strings.Contains(a.body, file+" cannot be trusted"):
					refused++
				default:
					t.Errorf("%s %s %s: %d %s", method, path, body, a.status, a.body)
				}
			}
			for _, r := range routes(t) {
				if slices.Contains(administered, r.handler) && r.Path != "/v1/request/tail" { // which does not end
					ask(r.Method, s.path(r), key, `{"filter":"all","what":"content"}`)
				}
			}
			ask(http.MethodGet, "/v1/key", secret, "")
			ask(http.MethodPost, "/v1/chat/completions", key, string(s.bodies("x")["a call"]))
			if refused == 0 {
				t.Error("nothing is refused")
			}
		})
	}
}
