package standard

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/tidwall/gjson"
)

// token returns a token of a person of the organisation acme. claims begin with a comma.
func (s *site) token(claims string) string {
	return oidctest.SignIDToken(s.signs, "one", oidc.ES256, fmt.Sprintf(`{"iss":%q,"sub":"eve","aud":"walker","exp":%d%s}`, s.from, time.Now().Add(time.Hour).Unix(), claims))
}

// ofOthers are claims and header fields by which a caller of acme says that it belongs to another
// organisation.
const ofOthers = `,"org":"default","org_id":"default","organization":"default","organization_id":"default","tenant":"default","project":"kept","groups":["admin"],"scope":"admin","scopes":["admin"]`

var headersOfOthers = []string{"OpenAI-Organization", "default", "Service-Organization", "default", "Service-Property-Organization", "default"}

// isAdministered reports whether the route is one of llm_control, which needs the scope admin.
func (r walked) isAdministered() bool {
	path := strings.TrimPrefix(r.Path, dashboard)
	administers := r.handler == "llm_control" || r.handler == "llm_ui" && (strings.HasPrefix(path, "/v1/organization/") ||
		strings.HasPrefix(path, "/v1/keys") || strings.HasPrefix(path, "/v1/audit") || strings.HasPrefix(path, "/v1/budgets"))
	return administers && path != "/v1/key" && !strings.HasPrefix(path, "/v1/key/") && !strings.HasSuffix(path, "openapi.json")
}

// made creates an object as an administrator, and returns its id.
func (s *site) made(path, body string) string {
	s.t.Helper()
	a := s.send(http.MethodPost, path, "walker-root", jsonType, []byte(body))
	id := gjson.Get(a.body, "id").Str
	if data := gjson.Get(a.body, "data.id").Str; data != "" {
		id = data
	}
	if a.status/100 != 2 || id == "" {
		s.t.Fatalf("%s: %d %s", path, a.status, a.body)
	}
	return id
}

// administer makes what the ids in the paths of llm_control name, all of the organisation
// default.
func (s *site) administer() {
	s.t.Helper()
	project := s.made("/v1/organization/projects", `{"name":"kept"}`)
	below := "/v1/organization/projects/" + project
	s.kept["{project}"] = project
	s.kept["/v1/keys"] = s.made("/v1/keys", `{"name":"kept","project":"kept","scopes":["gateway"]}`)
	s.kept[below+"/api_keys"] = s.kept["/v1/keys"]
	s.kept["/v1/organization/admin_api_keys"] = s.made("/v1/organization/admin_api_keys", `{"name":"kept"}`)
	s.kept[below+"/service_accounts"] = s.made(below+"/service_accounts", `{"name":"kept"}`)
	invited := s.made("/v1/organization/invites", `{"email":"kept@example.com","role":"reader","projects":[{"id":"`+project+`","role":"member"}]}`)
	s.kept["/v1/organization/invites"] = invited
	s.kept["/v1/organization/users"] = "user_" + strings.TrimPrefix(invited, "invite-")
	s.kept[below+"/users"] = s.kept["/v1/organization/users"]
	s.kept[below+"/rate_limits"] = s.made(below+"/rate_limits/rl-none", `{"max_requests_per_1_minute":7}`)
	s.made("/v1/budgets", `{"name":"kept","limit":"1000000","quantity":"requests","window":"month"}`)
	for _, path := range []string{below, "/v1/organization"} {
		if a := s.send(http.MethodPost, path+"/spend_limit", "walker-root", jsonType, []byte(`{"currency":"USD","interval":"month","threshold_amount":99900}`)); a.status != http.StatusOK {
			s.t.Fatalf("%d %s", a.status, a.body)
		}
		s.kept[path+"/spend_alerts"] = s.made(path+"/spend_alerts", alertBody)
	}
}

const alertBody = `{"threshold_amount":1,"currency":"USD","interval":"month","notification_channel":{"type":"email","recipients":["eve@example.com"]}}`

// changes are the events of the organisation default.
func (s *site) changes() string {
	return s.send(http.MethodGet, "/v1/audit?limit=200", "walker-root", jsonType, nil).body
}

// A verified token opens its own organisation alone, whatever it claims, and administers only
// with the role that the configuration gives that to, whichever route is asked.
func TestTokensAdministerNoOthers(t *testing.T) {
	s := serve(t)
	s.administer()
	member, admin := s.token(`,"role":"member"`+ofOthers), s.token(`,"role":"admin"`+ofOthers)
	if a := s.send("GET", "/v1/key", admin, jsonType, nil, headersOfOthers...); gjson.Get(a.body, "data.organization").Str != "acme" {
		t.Fatalf("%d %s", a.status, a.body)
	}
	before, denied, administered := s.changes(), 0, 0
	for _, r := range routes(t) {
		if !r.isAdministered() || r.handler == "llm_ui" { // tokens are for the API
			continue
		}
		bodies := []string{`{"email":"eve@example.com","role":"owner"}`, `{"role":"owner"}`, `{"user_id":"` + s.kept["/v1/organization/users"] + `","role":"owner"}`, `{"name":"kept","scopes":["admin"]}`, `{"threshold_amount":1,"currency":"USD","interval":"month"}`, `{"mode":"deny_list","model_ids":["*"]}`, alertBody, `{}`}
		if !r.takesBody() {
			bodies = bodies[:1]
		}
		if a := s.send(r.Method, s.path(r), member, jsonType, []byte(bodies[0]), headersOfOthers...); a.status != http.StatusForbidden {
			t.Errorf("%s lets a member administer: %d %s", r, a.status, a.body)
		}
		denied++
		for _, body := range bodies {
			a := s.send(r.Method, s.path(r), admin, jsonType, []byte(body), headersOfOthers...)
			named := strings.Contains(r.Path, "{id}") || strings.Contains(r.Path, "{project}")
			if named && a.status < 400 {
				t.Errorf("%s lets an administrator of acme at what another organisation has: %d %s", r, a.status, a.body)
			}
			if a.status < 400 {
				administered++
			}
			for _, id := range s.kept {
				if len(id) > 32 && a.status < 400 && strings.Contains(a.body, id) {
					t.Errorf("%s tells an administrator of acme of %s", r, id)
				}
			}
		}
	}
	if after := s.changes(); after != before {
		t.Errorf("the organisation default was changed from acme:\n%s\n%s", before, after)
	}
	if denied < 50 || administered < 10 {
		t.Errorf("%d denied, %d administered in acme: the walk proves nothing", denied, administered)
	}
}

var lastUsed = regexp.MustCompile(`"last_used_at":[^,}]*`)

// No key makes more of itself than an administrator has made of it, by whichever route.
func TestKeysDoNotWidenThemselves(t *testing.T) {
	s := serve(t)
	project := s.made("/v1/organization/projects", `{"name":"search"}`)
	create := func(settings string) (id, secret string) {
		t.Helper()
		a := s.send("POST", "/v1/keys", "walker-root", jsonType, []byte(settings))
		if a.status != http.StatusCreated {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return gjson.Get(a.body, "data.id").Str, gjson.Get(a.body, "data.secret").Str
	}
	const bounded = `"project":"search","models":["echo/echo-1"],"providers":["echo"],"properties":{"team":"search"},"user":"ada","expires_at":"2100-01-01T00:00:00Z"`
	wider := []string{
		`{"scopes":["admin","query","gateway","log","write"]}`, `{"models":[]}`, `{"models":null}`, `{"models":["*"]}`, `{"providers":[]}`, `{"expires_at":null}`,
		`{"expires_at":"2200-01-01T00:00:00Z"}`, `{"project":""}`, `{"project":"other"}`, `{"user":""}`, `{"properties":{}}`, `{"owner":"root"}`, `{"disabled":false}`,
		`{"trust":true}`, `{"trust_headers":["Service-User-Id"]}`, `{"organization":"other"}`, `{"id":"key_x"}`, `{"secrets":[]}`, `{"name":"a","name":"b"}`, `{"Scopes":["admin"]}`,
	}
	agent, agents := create(`{"name":"agent","scopes":["gateway","query","write","log"],` + bounded + `}`)
	admin, admins := create(`{"name":"admin","scopes":["admin"],"models":["echo/echo-1"],"providers":["echo"],"expires_at":"2100-01-01T00:00:00Z"}`)
	for id, secret := range map[string]string{agent: agents, admin: admins} {
		read := func() string {
			return lastUsed.ReplaceAllString(s.send("GET", "/v1/keys/"+id, "walker-root", jsonType, nil).body, "")
		}
		before := read()
		for _, change := range wider {
			paths := []string{"/v1/keys/" + id, "/v1/organization/projects/" + project + "/api_keys/" + id}
			for i, method := range []string{http.MethodPatch, http.MethodPost} {
				if a := s.send(method, paths[i], secret, jsonType, []byte(change)); a.status < 400 || a.status >= 500 {
					t.Errorf("a key may %s itself with %s: %d %s", method, change, a.status, a.body)
				}
			}
		}
		if after := read(); after != before {
			t.Errorf("the key was\n%s, and is\n%s", before, after)
		}
	}
	// Nobody administers one project: what bounds a key would be what the key says.
	account := s.made("/v1/organization/projects/"+project+"/service_accounts", `{"name":"crawler"}`)
	for path, settings := range map[string]string{
		"/v1/keys":          `{"name":"a","scopes":["admin"],"project":"search"}`,
		"/v1/keys?":         `{"name":"a","scopes":["gateway","admin"],"owner_id":"` + account + `"}`,
		"/v1/keys/" + agent: `{"scopes":["admin"]}`,
		"/v1/organization/projects/" + project + "/api_keys/" + agent:                         `{"scopes":["admin"]}`,
		"/v1/organization/projects/" + project + "/service_accounts/" + account + "/api_keys": `{"scopes":["admin"]}`,
	} {
		method := http.MethodPost
		if strings.HasPrefix(path, "/v1/keys/") {
			method = http.MethodPatch
		}
		if a := s.send(method, path, "walker-root", jsonType, []byte(settings)); a.status != http.StatusBadRequest {
			t.Errorf("%s %s makes an administrator of one project: %d %s", method, path, a.status, a.body)
		}
	}
}
