package llmui_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
)

// issuer logs everybody in as ada, who has the role analyst, unless a test says otherwise.
type issuer struct {
	oidctest.Server
	url    string
	key    *ecdsa.PrivateKey
	asked  url.Values     // of the last login
	claims map[string]any // in place of others
	secret string         // of the client
	info   map[string]any // what the UserInfo endpoint says, nil without one
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, secret: "client-secret"}
	i.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: "one", Algorithm: oidc.ES256}}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.url = server.URL
	i.SetIssuer(i.url)
	return i
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/auth":
		i.asked = r.URL.Query()
		back := url.Values{"code": {"code"}, "state": {i.asked.Get("state")}}
		http.Redirect(w, r, i.asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
	case "/token":
		challenge := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		id, secret, _ := r.BasicAuth()
		if r.FormValue("code") != "code" || id != "weir-ui" || secret != i.secret || r.FormValue("redirect_uri") != i.asked.Get("redirect_uri") ||
			i.asked.Get("code_challenge_method") != "S256" || base64.RawURLEncoding.EncodeToString(challenge[:]) != i.asked.Get("code_challenge") {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant"}`)
			return
		}
		claims := map[string]any{
			"iss": i.url, "sub": "ada", "aud": "weir-ui", "exp": time.Now().Add(time.Hour).Unix(), "nonce": i.asked.Get("nonce"), "groups": []string{"analyst"},
		}
		maps.Copy(claims, i.claims)
		maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
		text, _ := json.Marshal(claims) // of texts and numbers
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"access_token": "opaque", "token_type": "Bearer", "id_token": oidctest.SignIDToken(i.key, "one", oidc.ES256, string(text)),
		})
	case "/userinfo":
		if r.Header.Get("Authorization") != "Bearer opaque" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_ = json.NewEncoder(w).Encode(i.info)
	case "/.well-known/openid-configuration":
		known := httptest.NewRecorder()
		i.Server.ServeHTTP(known, r)
		if i.info != nil {
			known.Body = bytes.NewBufferString(strings.Replace(known.Body.String(), "{", `{"userinfo_endpoint":"`+i.url+`/userinfo",`, 1))
		}
		_, _ = known.Body.WriteTo(w)
	default:
		i.Server.ServeHTTP(w, r)
	}
}

// runLogin runs a dashboard below a prefix whose people log in at the issuer.
func runLogin(t *testing.T, i *issuer) (site string) {
	t.Helper()
	address := freeport.Address(t)
	config := fmt.Sprintf(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "FATAL"}}},
		"apps": {
			"llm": {
				"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}},
				"orgs": {"acme": {"keys": [{"secret": "acme-admin", "scopes": ["admin"]}], "identities": [{"issuer": %q, "audiences": ["weir"], "members": true, "roles": [
					{"claim": "groups", "value": "analyst", "scopes": ["query"]}, {"claim": "groups", "value": "agent", "scopes": ["gateway"]}]}]}}
			},
			"http": {"servers": {"ui": {"listen": [%q], "automatic_https": {"disable": true}, "routes": [{"match": [{"path": ["/weir/*"]}], "handle": [
				{"handler": "rewrite", "strip_path_prefix": "/weir"},
				{"handler": "llm_ui", "login": {"issuer": %[2]q, "client_id": "weir-ui", "client_secret": "client-secret"}}]}, {"handle": [{"handler": "llm_control"}]}]}}}
		}
	}`, filepath.Join(t.TempDir(), "weir.db"), i.url, address)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	return "http://" + address + "/weir"
}

// newBrowser has cookies of its own.
func newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

func get(t *testing.T, browser *http.Client, address string) (status int, body, at string) {
	t.Helper()
	resp, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var text strings.Builder
	if err := resp.Write(&text); err != nil {
		t.Fatal(err)
	}
	_, body, _ = strings.Cut(text.String(), "\r\n\r\n")
	return resp.StatusCode, body, resp.Request.URL.String()
}

func TestLoginAtAnIssuer(t *testing.T) {
	i := newIssuer(t)
	site := runLogin(t, i)
	ada := newBrowser(t)
	if status, body, _ := get(t, ada, site+"/api/session"); status != http.StatusUnauthorized || gjson.Get(body, "data.issuer").Str != i.url {
		t.Errorf("before the login: %d %s", status, body)
	}
	if status, _, at := get(t, ada, site+"/api/login?v=requests&f=status%3E%3D400"); status != http.StatusOK || at != site+"/?v=requests&f=status%3E%3D400" {
		t.Fatalf("the login ends with %d at %s", status, at)
	}
	if back := i.asked.Get("redirect_uri"); back != site+"/api/login/callback" {
		t.Errorf("the issuer is to send the browser to %s", back)
	}
	if status, body, _ := get(t, ada, site+"/api/session"); status != http.StatusOK || gjson.Get(body, "data.organization").Str != "acme" {
		t.Errorf("after the login: %d %s", status, body)
	}
	if status, body, _ := get(t, ada, site+"/api/v1/view"); status != http.StatusOK {
		t.Errorf("a query: %d %s", status, body)
	}
	if status, body, _ := get(t, newBrowser(t), site+"/api/session"); status != http.StatusUnauthorized {
		t.Errorf("another browser: %d %s", status, body)
	}
}

// What an issuer says at its UserInfo endpoint alone counts, if it is of the same person.
func TestLoginWithUserInfo(t *testing.T) {
	for name, c := range map[string]struct {
		claims, info map[string]any
		status       int
	}{
		"the role":               {map[string]any{"groups": nil}, map[string]any{"sub": "ada", "groups": []string{"analyst"}}, http.StatusOK},
		"of somebody else":       {map[string]any{"groups": nil}, map[string]any{"sub": "eve", "groups": []string{"analyst"}}, http.StatusForbidden},
		"of nobody":              {map[string]any{"groups": nil}, map[string]any{"groups": []string{"analyst"}}, http.StatusForbidden},
		"what the token says":    {map[string]any{"groups": []string{"other"}}, map[string]any{"sub": "ada", "groups": []string{"analyst"}}, http.StatusForbidden},
		"a token with the email": {map[string]any{"groups": nil, "email": "ada@acme.com"}, map[string]any{"sub": "ada", "groups": []string{"analyst"}}, http.StatusForbidden},
	} {
		i := newIssuer(t)
		i.claims, i.info = c.claims, c.info
		site := runLogin(t, i)
		if status, body, _ := get(t, newBrowser(t), site+"/api/login"); status != c.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
}

// Nobody logs in with the login of another browser, with a token for something else, or
// without a role.
func TestLoginsThatFail(t *testing.T) {
	i := newIssuer(t)
	site := runLogin(t, i)
	for name, c := range map[string]struct {
		claims map[string]any
		secret string
		status int
		says   string
	}{
		"of another login":    {map[string]any{"nonce": "other"}, "client-secret", http.StatusForbidden, "another login"},
		"for another service": {map[string]any{"aud": "weir"}, "client-secret", http.StatusForbidden, "not for weir-ui"},
		"that has ended":      {map[string]any{"exp": 1}, "client-secret", http.StatusForbidden, "expired"},
		"without a role":      {map[string]any{"groups": []string{"other"}}, "client-secret", http.StatusForbidden, "no role"},
		"of an agent":         {map[string]any{"groups": []string{"agent"}}, "client-secret", http.StatusForbidden, "scope"},
		"of another client":   {nil, "other-secret", http.StatusForbidden, "refuses the code"},
	} {
		i.claims, i.secret = c.claims, c.secret
		browser := newBrowser(t)
		if status, body, _ := get(t, browser, site+"/api/login"); status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("a token %s: %d %s", name, status, body)
		}
		if status, _, _ := get(t, browser, site+"/api/session"); status != http.StatusUnauthorized {
			t.Errorf("a token %s begins a session", name)
		}
	}
	i.claims, i.secret = nil, "client-secret"
	begun, other := newBrowser(t), newBrowser(t)
	begun.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == "/weir/api/login/callback" { // the victim follows the link of the attacker
			return http.ErrUseLastResponse
		}
		return nil
	}
	_, _, _ = get(t, begun, site+"/api/login")
	for _, query := range []string{"code=code&state=" + i.asked.Get("state"), "code=code&state=", "code=code", "error=access_denied&state=" + i.asked.Get("state")} {
		if status, body, _ := get(t, other, site+"/api/login/callback?"+query); status != http.StatusForbidden {
			t.Errorf("%s: %d %s", query, status, body)
		}
	}
	if status, _, _ := get(t, other, site+"/api/session"); status != http.StatusUnauthorized {
		t.Error("the victim has a session of the attacker")
	}
}

func TestTheIssuerIsAway(t *testing.T) {
	i := newIssuer(t)
	site := runLogin(t, i)
	i.SetIssuer("https://other.example.com") // whose documents are not those of the issuer
	if status, body, _ := get(t, newBrowser(t), site+"/api/login"); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, body)
	}
}

// A session of a member has the member's role as it is, and ends with the member.
func TestSessionsOfMembers(t *testing.T) {
	i := newIssuer(t)
	site := runLogin(t, i)
	i.claims = map[string]any{"groups": []string{}, "email": "ada@acme.com", "email_verified": true, "name": "Ada"}
	administer := func(method, path, body string) string {
		t.Helper()
		r, err := http.NewRequest(method, strings.TrimSuffix(site, "/weir")+"/v1/organization/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer acme-admin")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s %s: %d %s %v", method, path, resp.StatusCode, text, err)
		}
		return string(text)
	}
	ada := newBrowser(t)
	if status, body, _ := get(t, ada, site+"/api/login"); status != http.StatusForbidden || !strings.Contains(body, "no member's") {
		t.Errorf("before the invitation: %d %s", status, body)
	}
	administer("POST", "invites", `{"email":"Ada@acme.com","role":"reader"}`)
	if status, body, _ := get(t, ada, site+"/api/login"); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	user := gjson.Get(administer("GET", "users", ""), "data.0")
	if user.Get("name").Str != "Ada" || gjson.Get(administer("GET", "invites", ""), "data.0.status").Str != "accepted" {
		t.Error("the login is not noted:", user.Raw)
	}
	administer("POST", "users/"+user.Get("id").Str, `{"role":"owner"}`)
	made, err := ada.Post(site+"/api/v1/keys", "application/json", strings.NewReader(`{"name":"ada's","scopes":["gateway"]}`))
	if err != nil {
		t.Fatal(err)
	}
	made.Body.Close()
	by := gjson.Get(administer("GET", "audit_logs?limit=1", ""), "data.0")
	if made.StatusCode != http.StatusCreated || by.Get("type").Str != "api_key.created" || by.Get("actor.type").Str != "session" || by.Get("actor.session.user.id").Str != user.Get("id").Str {
		t.Errorf("what a member does is told as %d %s", made.StatusCode, by.Raw)
	}
	for role, content := range map[string]bool{"owner": true, "reader": false} {
		administer("POST", "users/"+user.Get("id").Str, `{"role":"`+role+`"}`)
		if status, body, _ := get(t, ada, site+"/api/session"); status != http.StatusOK || gjson.Get(body, "data.content").Bool() != content || gjson.Get(body, "data.admin").Bool() != content {
			t.Errorf("a session of the role %s: %d %s", role, status, body)
		}
	}
	project := gjson.Get(administer("POST", "projects", `{"name":"search"}`), "id").Str
	administer("POST", "projects/"+project+"/users", `{"user_id":"`+user.Get("id").Str+`","role":"owner"}`)
	if status, body, _ := get(t, ada, site+"/api/session"); status != http.StatusOK {
		t.Errorf("a session within a project: %d %s", status, body)
	}
	administer("POST", "projects/"+project+"/archive", "")
	for _, path := range []string{"/api/session", "/api/v1/keys"} {
		if status, body, _ := get(t, ada, site+path); status != http.StatusUnauthorized {
			t.Errorf("%s in an archived project: %d %s", path, status, body)
		}
	}
	if status, body, _ := get(t, newBrowser(t), site+"/api/login"); status != http.StatusForbidden || !strings.Contains(body, "archived") {
		t.Errorf("a login in an archived project: %d %s", status, body)
	}
	administer("DELETE", "users/"+user.Get("id").Str, "")
	for _, path := range []string{"/api/session", "/api/v1/view"} {
		if status, body, _ := get(t, ada, site+path); status != http.StatusUnauthorized {
			t.Errorf("%s of a member who was removed: %d %s", path, status, body)
		}
	}
}
