package llmcontrol_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
)

// An erasure leaves the records under hold, says so, and takes them once the hold is lifted. The
// audit log says who placed and who lifted it. Other organisations neither see nor lift it.
func TestHolds(t *testing.T) {
	s := newSite(t)
	const admin, user = "acme-admin", "c4nary0123456789abcdef"
	for _, input := range []string{"first", "second"} {
		if status, got := s.as("acme-all", "POST", "/v1/responses", `{"model":"echo-1","input":"`+input+` of `+user+`"}`); status != http.StatusOK {
			t.Fatal(status, got.Raw)
		}
	}
	containing := func(text string) string {
		return `{"request_response_rmt":{"request_body":{"contains":"` + text + `"}}}`
	}
	count := func(filter string) int {
		return len(s.must(admin, "POST", "/v1/request/query", `{"filter":`+filter+`}`).Array())
	}
	for deadline := time.Now().Add(10 * time.Second); count(`"all"`) != 2; {
		if time.Now().After(deadline) {
			t.Fatal("the calls are not recorded")
		}
	}
	for body, want := range map[string]int{
		``: 400, `{"filter":"all"}`: 400, `{"reason":"x"}`: 400, `{"filter":"all","reason":" "}`: 400, `{"filter":"all","reason":1}`: 400,
		`{"filter":"all","reason":"` + strings.Repeat("ä", 501) + `"}`: 400, `{"filter":"all","reason":"x","until":"tomorrow"}`: 400,
		`{"filter":{"users_view":{"cost":{"gt":1}}},"reason":"x"}`: 400,
	} {
		if status, got := s.as(admin, "POST", "/v1/holds", body); status != want {
			t.Errorf("%s: %d %s, want %d", body, status, got.Raw, want)
		}
	}
	hold := s.must(admin, "POST", "/v1/holds", `{"filter":`+containing("first")+`,"reason":"case 4711"}`)
	path := "/v1/holds/" + hold.Get("id").Str
	if got := s.must(admin, "GET", path, ""); got.Raw != hold.Raw || got.Get("reason").Str != "case 4711" || got.Get("filter").Raw != containing("first") || got.Get("placed_by").Str == "" {
		t.Error(got.Raw, hold.Raw)
	}
	s.must(admin, "DELETE", "/v1/holds/"+s.must(admin, "POST", "/v1/holds", `{"filter":"all","reason":"a mistake"}`).Get("id").Str, "")
	if got := s.must(admin, "GET", "/v1/holds?limit=1", ""); got.Get("items").Raw != "["+hold.Raw+"]" || got.Get("next").Type != gjson.Null {
		t.Error(got.Raw)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if status, _ := s.as("globex-admin", method, path, ""); status != http.StatusForbidden && status != http.StatusNotFound {
			t.Errorf("another organisation: %s %d", method, status)
		}
		if status, _ := s.as("acme-all", method, path, ""); status != http.StatusForbidden {
			t.Errorf("a key that does not administer: %s %d", method, status)
		}
	}
	settings := `{"filter":` + containing(user) + `,"what":"record"`
	held := func(got gjson.Result) bool {
		return got.Get("records").Int() == 2 && got.Get("held.records").Int() == 1 && got.Get("held.holds.0").Str == hold.Get("id").Str
	}
	if got := s.must(admin, "POST", "/v1/erasures", settings+`,"dry_run":true}`); !held(got) {
		t.Error(got.Raw)
	}
	erasure := "/v1/erasures/" + s.must(admin, "POST", "/v1/erasures", settings+`}`).Get("id").Str
	if got := s.erased(admin, erasure, "held"); !held(got) || got.Get("erased").Int() != 1 || got.Get("done_at").Type != gjson.Null {
		t.Error(got.Raw)
	}
	if count(`"all"`) != 1 || count(containing("first")) != 1 {
		t.Error("the record under hold is gone")
	}
	s.must(admin, "DELETE", path, "")
	if got := s.erased(admin, erasure, "done"); got.Get("held").Type != gjson.Null || got.Get("erased").Int() != 2 {
		t.Error(got.Raw)
	}
	if files := s.raw("first of " + user); files != nil || count(`"all"`) != 0 {
		t.Errorf("the text is in %v", files)
	}
	var actions []string
	for _, e := range s.must(admin, "GET", "/v1/audit?key="+hold.Get("id").Str, "").Get("items").Array() {
		actions = append(actions, e.Get("action").Str+" by "+e.Get("actor.key").Str)
	}
	if by := hold.Get("placed_by").Str; len(actions) != 2 || actions[0] != "hold.deleted by "+by || actions[1] != "hold.created by "+by {
		t.Error(actions)
	}
	if got := s.must(admin, "GET", "/v1/holds", ""); got.Get("items").Raw != "[]" {
		t.Error(got.Raw)
	}
}

// Whatever filter or id another organisation sends, it neither erases, nor holds, nor counts, nor
// sees what is not its own.
func TestErasuresAndHoldsOfOthers(t *testing.T) {
	s := newSite(t)
	const admin, attacker = "acme-admin", "globex-admin"
	if status, got := s.as("acme-all", "POST", "/v1/responses", `{"model":"echo-1","input":"mine of ada"}`); status != http.StatusOK {
		t.Fatal(status, got.Raw)
	}
	ofEcho := `{"request_response_rmt":{"model":{"contains":"echo"}}}`
	preview := func(key, filter string) int64 {
		t.Helper()
		return s.must(key, "POST", "/v1/erasures", `{"filter":`+filter+`,"what":"record","dry_run":true}`).Get("records").Int()
	}
	for deadline := time.Now().Add(10 * time.Second); preview(admin, ofEcho) != 1; {
		if time.Now().After(deadline) {
			t.Fatal("the call is not recorded")
		}
	}
	acme := `{"request_response_rmt":{"organization_id":{"equals":"acme"}}}`
	negated := `{"request_response_rmt":{"organization_id":{"not-equals":"globex"}}}`
	or := func(a, b string) string { return `{"operator":"or","left":` + a + `,"right":` + b + `}` }
	for _, filter := range []string{`"all"`, ofEcho, acme, negated, or(acme, `"all"`), or(ofEcho, negated)} {
		if n := preview(attacker, filter); n != 0 {
			t.Errorf("%s: %d records of another organisation", filter, n)
		}
		if got := s.must(attacker, "POST", "/v1/erasures", `{"filter":`+filter+`,"what":"record"}`); got.Get("records").Int() != 0 || got.Get("bytes").Int() != 0 {
			t.Error(got.Raw)
		}
		s.must(attacker, "POST", "/v1/holds", `{"filter":`+filter+`,"reason":"an attack"}`)
	}
	hold := s.must(admin, "POST", "/v1/holds", `{"filter":`+ofEcho+`,"reason":"case 4711"}`).Get("id").Str
	erasure := s.must(admin, "POST", "/v1/erasures", `{"filter":`+ofEcho+`,"what":"record"}`)
	if got := erasure.Get("held"); got.Get("records").Int() != 1 || got.Get("holds").Raw != `["`+hold+`"]` {
		t.Errorf("the holds of others count: %s", got.Raw)
	}
	for _, path := range []string{"/v1/holds/" + hold, "/v1/erasures/" + erasure.Get("id").Str} {
		if status, got := s.as(attacker, "GET", path, ""); status != http.StatusNotFound || strings.Contains(got.Raw, "ada") {
			t.Errorf("%s: %d %s", path, status, got.Raw)
		}
	}
	if status, _ := s.as(attacker, "DELETE", "/v1/holds/"+hold, ""); status != http.StatusNotFound {
		t.Errorf("another organisation lifts the hold: %d", status)
	}
	for _, list := range []string{"/v1/holds?limit=200", "/v1/erasures?limit=200", "/v1/audit?limit=200"} {
		if got := s.must(attacker, "GET", list, ""); strings.Contains(got.Raw, hold) || strings.Contains(got.Raw, erasure.Get("id").Str) || strings.Contains(got.Raw, "4711") {
			t.Errorf("%s: %s", list, got.Raw)
		}
	}
	for _, after := range []string{"/v1/holds?after=" + hold, "/v1/erasures?after=" + erasure.Get("id").Str} {
		if status, got := s.as(attacker, "GET", after, ""); status < 400 && len(got.Get("data.items").Array()) > 0 {
			t.Errorf("%s: %d %s", after, status, got.Raw)
		}
	}
	for _, key := range []string{"acme-all", "globex-agent"} {
		for method, path := range map[string]string{"POST": "/v1/erasures", "GET": "/v1/erasures", "DELETE": "/v1/holds/" + hold} {
			if status, got := s.as(key, method, path, `{"filter":"all","what":"record","dry_run":true}`); status != http.StatusForbidden {
				t.Errorf("%s: %s %s: %d %s", key, method, path, status, got.Raw)
			}
		}
	}
	s.must(admin, "DELETE", "/v1/holds/"+hold, "")
	s.erased(admin, "/v1/erasures/"+erasure.Get("id").Str, "done")
}
