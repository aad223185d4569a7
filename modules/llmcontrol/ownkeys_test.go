package llmcontrol_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// keyIn creates a project whose keys create keys, and a key in it.
func (s *site) keyIn(admin, project, permissions, settings string) (id, secret, path string) {
	s.t.Helper()
	path = organization + "projects/" + s.ok(admin, "POST", organization+"projects", `{"name":"`+project+`"}`).Get("id").Str
	if permissions != "" {
		s.ok(admin, "POST", path+"/key_permissions", permissions)
	}
	k := s.must(admin, "POST", "/v1/keys", `{"name":"agents","project":"`+project+`",`+settings+`}`)
	return k.Get("id").Str, k.Get("secret").Str, path
}

// A key in a project creates, lists, rotates and deletes keys of its own if an administrator allows
// it, and never gives more than it has.
func TestOwnKeys(t *testing.T) {
	s := newSite(t)
	const admin, own = "acme-admin", "/v1/key/keys"
	expires := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	id, parent, path := s.keyIn(admin, "search", "", `"owner":"ada","user":"ada","scopes":["gateway","metrics"],"models":["echo/*"],"properties":{"Team":"blue"},"expires_at":"`+expires+`"`)
	if got := s.ok(admin, "GET", path+"/key_permissions", ""); got.Raw != `{"object":"project.key_permissions","creators":[],"max_keys":0,"max_lifetime_seconds":0}` {
		t.Error(got.Raw)
	}
	s.refused(403, "project search", parent, "POST", own, `{"name":"laptop"}`)
	if got := s.must(parent, "GET", "/v1/key", ""); got.Get("key_permissions").Raw != "[]" || got.Get("user").Str != "ada" {
		t.Error(got.Raw)
	}
	for body, says := range map[string]string{
		`{}`: "creators", `{"creators":["everybody"]}`: "creators", `{"creators":["keys"],"max_keys":0}`: "max_keys",
		`{"creators":["keys"],"max_lifetime_seconds":0}`: "max_lifetime_seconds", `{"creators":["keys"],"who":"me"}`: "who",
	} {
		s.refused(400, says, admin, "POST", path+"/key_permissions", body)
	}
	s.ok(admin, "POST", path+"/key_permissions", `{"creators":["keys"],"max_keys":2}`)
	for body, says := range map[string]string{
		`{"name":""}`:                              "name",
		`{"name":"x","scopes":["query"]}`:          "query, which you do not have",
		`{"name":"x","scopes":["admin"]}`:          "admin",
		`{"name":"x","scopes":[]}`:                 "scopes",
		`{"name":"x","models":["gpt-5"]}`:          "gpt-5",
		`{"name":"x","models":["*"]}`:              "*",
		`{"name":"x","user":"bo"}`:                 "user",
		`{"name":"x","trust":["user"]}`:            "trust",
		`{"name":"x","properties":{"Team":"red"}}`: "properties",
		`{"name":"x","expires_at":"` + time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339) + `"}`: "expires_at",
		`{"name":"x","expires_at":"2020-01-01T00:00:00Z"}`:                                           "expires_at",
	} {
		s.refused(400, says, parent, "POST", own, body)
	}
	s.refused(403, "project mail", parent, "POST", own, `{"name":"x","project":"mail"}`)
	s.refused(403, "neither", "acme-all", "POST", own, `{"name":"x"}`)

	made := s.must(parent, "POST", own, `{"name":"laptop","models":["echo/echo-1"]}`)
	child, childID := made.Get("secret").Str, made.Get("id").Str
	if made.Get("user").Str != "ada" || made.Get("properties.Team").Str != "blue" || made.Get("owner").Str != "ada" || made.Get("creator.id").Str != id || !strings.HasPrefix(made.Get("expires_at").Str, expires[:16]) {
		t.Error(made.Raw)
	}
	if status, answer := s.call(child, "echo/echo-1"); status != 200 {
		t.Fatal(answer.Raw)
	}
	s.refused(403, "creates no others", child, "POST", own, `{"name":"x"}`)
	if got := s.must(parent, "GET", own, "").Get("items"); got.Get("#").Int() != 1 || got.Get("0.id").Str != childID || got.Get("0.secret").Exists() {
		t.Error(got.Raw)
	}
	other := s.must(parent, "POST", own, `{"name":"server","scopes":["metrics"]}`)
	s.refused(409, "as many as", parent, "POST", own, `{"name":"third"}`)
	s.must(parent, "DELETE", own+"/"+other.Get("id").Str, "")
	rotated := s.must(parent, "POST", own+"/"+childID+"/rotate", `{"overlap_seconds":0}`).Get("secret").Str
	if status, _ := s.call(child, "echo/echo-1"); status != 401 {
		t.Error("the rotated secret opens")
	}
	next := s.must(parent, "POST", own+"/"+id+"/rotate", `{"overlap_seconds":60}`).Get("secret").Str // itself
	if status, answer := s.call(next, "echo/echo-1"); status != 200 {
		t.Error(answer.Raw)
	}
	if events := s.must(admin, "GET", "/v1/audit?key="+childID, ""); events.Get("items.#").Int() != 2 || events.Get("items.1.actor.key").Str != id {
		t.Error(events.Raw)
	}

	// What the creator may not do any more, its keys may not.
	for change, want := range map[string]int{`{"disabled":true}`: 401, `{"models":["openai/*"]}`: 403, `{"scopes":["metrics"]}`: 401, `{"project":"mail"}`: 401} {
		s.must(admin, "PATCH", "/v1/keys/"+id, change)
		if status, answer := s.call(rotated, "echo/echo-1"); status != want {
			t.Errorf("after %s: %d %s", change, status, answer.Raw)
		}
		s.must(admin, "PATCH", "/v1/keys/"+id, `{"disabled":false,"models":["echo/*"],"scopes":["gateway","metrics"],"project":"search"}`)
		if status, answer := s.call(rotated, "echo/echo-1"); status != 200 {
			t.Errorf("after %s is taken back: %d %s", change, status, answer.Raw)
		}
	}
	// An administrator's change of such a key does not lead beyond its creator.
	s.must(admin, "PATCH", "/v1/keys/"+childID, `{"scopes":["gateway","query"],"models":[],"expires_at":null}`)
	if got := s.must(rotated, "GET", "/v1/key", ""); got.Get("scopes").Raw != `["gateway"]` || got.Get("models").Raw != `["echo/*"]` || got.Get("expires_at").Type == 0 {
		t.Error(got.Raw)
	}
	s.must(admin, "DELETE", "/v1/keys/"+id, "")
	if status, _ := s.call(rotated, "echo/echo-1"); status != 401 {
		t.Error("the key of a key that was deleted opens")
	}
	s.refused(404, "key", admin, "GET", "/v1/keys/"+childID, "")
}

// A key gets no owner that it owns.
func TestKeysDoNotOwnThemselves(t *testing.T) {
	s := newSite(t)
	const admin = "acme-admin"
	made := func(more string) string {
		return s.must(admin, "POST", "/v1/keys", `{"name":"x","scopes":["gateway"]`+more+`}`).Get("id").Str
	}
	a := made("")
	b := made(`,"owner_id":"` + a + `"`)
	for _, owner := range []string{a, b} {
		s.refused(400, "owner_id", admin, "PATCH", "/v1/keys/"+a, `{"owner_id":"`+owner+`"}`)
	}
	s.must(admin, "DELETE", "/v1/keys/"+a, "")
	s.refused(404, "key", admin, "GET", "/v1/keys/"+b, "")
}

// Budgets count the keys that a key created as the key: many keys do not have many limits. A
// budget that names one of them counts it, too.
func TestOwnKeysShareABudget(t *testing.T) {
	s := newSite(t)
	const admin = "acme-admin"
	_, parent, _ := s.keyIn(admin, "search", `{"creators":["keys"]}`, `"scopes":["gateway"]`)
	first, second := s.must(parent, "POST", "/v1/key/keys", `{"name":"a"}`), s.must(parent, "POST", "/v1/key/keys", `{"name":"b"}`)
	s.must(admin, "POST", "/v1/budgets", `{"name":"each","quantity":"requests","limit":"3","window":"total","per":"key"}`)
	s.must(admin, "POST", "/v1/budgets", `{"name":"first","quantity":"requests","limit":"1","window":"total","filter":{"request_response_rmt":{"key_id":{"equals":"`+first.Get("id").Str+`"}}}}`)
	call := func(secret string, want int, budget string) {
		t.Helper()
		if status, answer := s.call(secret, "echo/echo-1"); status != want || !strings.Contains(answer.Raw, budget) {
			t.Errorf("%d %s, want %d", status, answer.Raw, want)
		}
	}
	call(first.Get("secret").Str, 200, "")
	call(first.Get("secret").Str, 429, "first")
	call(second.Get("secret").Str, 200, "")
	call(parent, 200, "")
	call(second.Get("secret").Str, 429, "each")
	call(parent, 429, "each")
	if got := s.must(second.Get("secret").Str, "GET", "/v1/key", "").Get(`budgets.#(name="each").accounts.0.spent`).Raw; got != "3" {
		t.Error("a key is told that its budget has", got)
	}
}

// A member creates keys in the projects that allow it. They end with the membership, and have the
// role of the member.
func TestOwnKeysOfMembers(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	issuer := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: private.Public(), KeyID: "one", Algorithm: oidc.ES256}}}
	server := httptest.NewServer(issuer)
	t.Cleanup(server.Close)
	issuer.SetIssuer(server.URL)
	s := newSite(t, "identity jwt "+server.URL+" {\naudience weir\norg org\nuser email\nmembers\n}")
	token := func(who string) string {
		return oidctest.SignIDToken(private, "one", oidc.ES256, fmt.Sprintf(`{"iss":%q,"sub":%q,"aud":"weir","exp":%d,"org":"acme","email":"%[2]s@acme.com","email_verified":true}`, server.URL, who, time.Now().Add(time.Hour).Unix()))
	}
	const admin, own = "acme-admin", "/v1/key/keys"
	_, _, search := s.keyIn(admin, "search", `{"creators":["members"],"max_lifetime_seconds":3600}`, `"scopes":["gateway"]`)
	_, _, mail := s.keyIn(admin, "mail", `{"creators":["owners"]}`, `"scopes":["gateway"]`)
	for _, email := range []string{"ada@acme.com", "bo@acme.com"} {
		s.ok(admin, "POST", organization+"invites", `{"email":"`+email+`","role":"reader"}`)
	}
	ada := s.ok(admin, "GET", organization+"users?emails[]=ada@acme.com", "").Get("data.0.id").Str
	s.refused(403, "project search", token("ada"), "POST", own, `{"name":"x","project":"search"}`)
	for _, path := range []string{search, mail} {
		s.ok(admin, "POST", path+"/users", `{"user_id":"`+ada+`","role":"member"}`)
	}
	s.refused(400, "search, mail", token("ada"), "POST", own, `{"name":"x"}`)
	s.refused(403, "project mail", token("ada"), "POST", own, `{"name":"x","project":"mail"}`)
	s.refused(400, "query", token("ada"), "POST", own, `{"name":"x","project":"search","scopes":["query"]}`)
	s.refused(403, "project search", token("bo"), "POST", own, `{"name":"x","project":"search"}`)
	if got := s.must(token("ada"), "GET", "/v1/key", "").Get("key_permissions").Raw; got != `[{"project":"search","max_keys":10,"max_lifetime_seconds":3600}]` {
		t.Error(got)
	}
	s.ok(admin, "POST", mail+"/users/"+ada, `{"role":"owner"}`)
	s.must(token("ada"), "POST", own, `{"name":"mails","project":"mail"}`)

	s.ok(admin, "POST", organization+"users/"+ada, `{"role":"member"}`)
	made := s.must(token("ada"), "POST", own, `{"name":"laptop","project":"search","scopes":["gateway","query"]}`)
	secret, id := made.Get("secret").Str, made.Get("id").Str
	if ends, err := time.Parse(time.RFC3339, made.Get("expires_at").Str); made.Get("user").Str != "ada@acme.com" || made.Get("owner_id").Str != ada || err != nil || time.Until(ends) > time.Hour {
		t.Error(made.Raw)
	}
	if got := s.must(secret, "GET", "/v1/key", "").Get("scopes").Raw; got != `["gateway","metrics","query"]` {
		t.Error(got)
	}
	s.refused(404, "key", token("bo"), "DELETE", own+"/"+id, "")
	s.refused(404, "key", token("bo"), "POST", own+"/"+id+"/rotate", "{}")
	// A member and the keys of the member have one limit.
	s.must(admin, "POST", "/v1/budgets", `{"name":"each","quantity":"requests","limit":"1","window":"total","per":"key"}`)
	if status, answer := s.call(secret, "echo/echo-1"); status != 200 {
		t.Error(answer.Raw)
	}
	if status, _ := s.call(token("ada"), "echo/echo-1"); status != 429 {
		t.Errorf("the member has a limit beside that of the member's key: %d", status)
	}
	s.must(admin, "DELETE", "/v1/budgets/each", "")

	s.ok(admin, "POST", organization+"users/"+ada, `{"role":"reader"}`)
	if got := s.must(secret, "GET", "/v1/key", "").Get("scopes").Raw; got != `["gateway"]` {
		t.Error("the key of a reader has", got)
	}
	s.ok(admin, "DELETE", search+"/users/"+ada, "")
	if status, _ := s.call(secret, "echo/echo-1"); status != 401 {
		t.Error("the key of somebody who has left the project opens")
	}
	s.ok(admin, "POST", search+"/users", `{"user_id":"`+ada+`","role":"member"}`)
	if status, answer := s.call(secret, "echo/echo-1"); status != 200 {
		t.Error(answer.Raw)
	}
	s.ok(admin, "DELETE", search+"/key_permissions", "")
	s.refused(403, "project search", token("ada"), "POST", own+"/"+id+"/rotate", "{}")
	s.must(token("ada"), "DELETE", own+"/"+id, "")
	s.ok(admin, "DELETE", organization+"users/"+ada, "")
	if got := s.must(admin, "GET", "/v1/keys?project=mail", "").Get("items.#").Int(); got != 1 {
		t.Error("keys of a member who was removed are left:", got)
	}
}
