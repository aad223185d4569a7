package standard

import (
	"net/http"
	"slices"
	"testing"
)

// elsewhere are fields by which a browser tells that a request is of another site.
var elsewhere = [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"}}

// No other site can make a browser that is logged in change anything, and nobody without the
// scope admin administers, whichever route is asked.
func TestForgedAndForbiddenChanges(t *testing.T) {
	s := serve(t)
	s.administer()
	before := s.changes()
	admin, viewer := s.logIn("walker-root"), s.logIn("walker-viewer")
	forged, forbidden := 0, 0
	for _, r := range routes(t) {
		if r.handler == "llm_ui" && r.Method != http.MethodGet {
			for _, from := range elsewhere {
				if a := s.send(r.Method, s.path(r), "", jsonType, []byte(`{}`), slices.Concat(admin, from)...); a.status != http.StatusForbidden {
					t.Errorf("%s from another site with %q: %d %s", r, from, a.status, a.body)
				}
			}
			forged++
		}
		if !r.isAdministered() {
			continue
		}
		forbidden++
		for key, header := range map[string][]string{"walker-viewer": viewer, "walker-other": nil} { // a key without scopes has all but admin
			if header == nil && r.handler == "llm_ui" {
				continue
			}
			if a := s.send(r.Method, s.path(r), key, jsonType, []byte(`{"name":"a","scopes":["admin"]}`), header...); a.status != http.StatusForbidden {
				t.Errorf("%s lets %s administer: %d %s", r, key, a.status, a.body)
			}
		}
	}
	if after := s.changes(); after != before {
		t.Errorf("something was changed:\n%s\n%s", before, after)
	}
	if forged < 40 || forbidden < 80 {
		t.Errorf("%d routes that change, %d that administer: the walk proves nothing", forged, forbidden)
	}
}
