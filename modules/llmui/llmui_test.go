package llmui_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	pathpkg "path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
	"github.com/weirhq/weir/modules/llmui"
	_ "github.com/weirhq/weir/storage/sqlite"
)

// newSite runs a site with the dashboard, and another one for users whom Caddy
// has authenticated.
func newSite(t *testing.T) (url, trusted string) {
	t.Helper()
	site, trust := freeport.Address(t), freeport.Address(t)
	config := fmt.Sprintf(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "ERROR"}}},
		"apps": {
			"llm": {
				"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}, "retention": "720h"}},
				"keys": [{"secret": "reader", "scopes": ["query"]}, {"secret": "logger", "scopes": ["log"]}],
				"orgs": {"acme": {"keys": [{"secret": "acme"}]}}
			},
			"http": {"servers": {
				"ui": {"listen": [%q], "automatic_https": {"disable": true}, "trusted_proxies": {"source": "static", "ranges": ["127.0.0.1/32"]}, "routes": [{"handle": [
					{"handler": "llm_ui"}, {"handler": "static_response", "status_code": 418}]}]},
				"trusted": {"listen": [%q], "automatic_https": {"disable": true}, "routes": [{"handle": [
					{"handler": "llm_ui", "trust_user": "{http.request.header.X-User}", "org": "acme"}]}]}
			}}
		}
	}`, filepath.Join(t.TempDir(), "weir.db"), site, trust)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	return "http://" + site, "http://" + trust
}

// ada is a user whom Caddy authenticated.
var ada = http.Header{"X-User": {"ada"}}

// do sends a request, and returns the response and its body.
func do(t *testing.T, method, url, body string, header http.Header) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, header)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}

func TestPagesRunTheirOwnScriptsAlone(t *testing.T) {
	site, _ := newSite(t)
	for path, contentType := range map[string]string{
		"/": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8",
		"/app.css": "text/css; charset=utf-8", "/vendor/preact.mjs": "text/javascript; charset=utf-8",
	} {
		resp, body := do(t, http.MethodGet, site+path, "", nil)
		policy := resp.Header.Get("Content-Security-Policy")
		if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != contentType || body == "" {
			t.Errorf("%s: %d, %s, %d bytes", path, resp.StatusCode, resp.Header.Get("Content-Type"), len(body))
		}
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "trusted-types 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("%s: the policy is %q", path, policy)
		}
		again, _ := do(t, http.MethodGet, site+path, "", http.Header{"If-None-Match": {resp.Header.Get("ETag")}})
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: asked again, it answers %d", path, again.StatusCode)
		}
	}
	if resp, _ := do(t, http.MethodGet, site+"/v1/other", "", nil); resp.StatusCode != 418 {
		t.Errorf("another path answers %d, not what the next handler does", resp.StatusCode)
	}
}

func TestAKeyIsExchangedForACookieThatScriptsCannotRead(t *testing.T) {
	site, _ := newSite(t)
	query := func(cookie string) int {
		resp, _ := do(t, http.MethodPost, site+"/api/v1/request/query-clickhouse", `{"filter":"all"}`, http.Header{"Cookie": {cookie}})
		return resp.StatusCode
	}
	if status := query(""); status != http.StatusUnauthorized {
		t.Errorf("without a session a query answers %d", status)
	}
	resp, body := do(t, http.MethodPost, site+"/api/session", `{"key":"acme"}`, nil)
	if resp.StatusCode != 200 || gjson.Get(body, "data.organization").Str != "acme" || len(resp.Cookies()) != 1 {
		t.Fatalf("%d: %s", resp.StatusCode, body)
	}
	cookie := resp.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || len(cookie.Value) < 43 {
		t.Errorf("the cookie is %v", cookie)
	}
	pair := cookie.Name + "=" + cookie.Value
	if status := query(pair); status != 200 {
		t.Errorf("with a session a query answers %d", status)
	}
	if resp, body := do(t, http.MethodGet, site+"/api/session", "", http.Header{"Cookie": {pair}}); resp.StatusCode != 200 || gjson.Get(body, "data.login").Bool() != true {
		t.Errorf("whose session it is: %d: %s", resp.StatusCode, body)
	}
	do(t, http.MethodDelete, site+"/api/session", "", http.Header{"Cookie": {pair}})
	if status := query(pair); status != http.StatusUnauthorized {
		t.Errorf("after the session has ended a query answers %d", status)
	}
}

func TestWhoMayNotLogIn(t *testing.T) {
	site, _ := newSite(t)
	t.Cleanup(llmui.ForgetFailures)
	for name, c := range map[string]struct {
		body   string
		header http.Header
		status int
	}{
		"a key without the scope": {`{"key":"logger"}`, nil, http.StatusForbidden},
		"an unknown key":          {`{"key":"nope"}`, nil, http.StatusUnauthorized},
		"no JSON":                 {`key=reader`, nil, http.StatusBadRequest},
		"a form":                  {`{"key":"reader"}`, http.Header{"Content-Type": {"text/plain"}}, http.StatusUnsupportedMediaType},
		"another site":            {`{"key":"reader"}`, http.Header{"Sec-Fetch-Site": {"cross-site"}}, http.StatusForbidden},
	} {
		if resp, body := do(t, http.MethodPost, site+"/api/session", c.body, c.header); resp.StatusCode != c.status || len(resp.Cookies()) > 0 {
			t.Errorf("%s: %d %v: %s", name, resp.StatusCode, resp.Cookies(), body)
		}
	}
	for range 5 {
		do(t, http.MethodPost, site+"/api/session", `{"key":"guess"}`, nil)
	}
	if resp, _ := do(t, http.MethodPost, site+"/api/session", `{"key":"reader"}`, nil); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("after five wrong keys another one answers %d", resp.StatusCode)
	}
}

// Behind a balancer that Caddy trusts, browsers are told apart, and the cookie goes over
// TLS alone if the balancer speaks TLS.
func TestBrowsersBehindABalancer(t *testing.T) {
	site, _ := newSite(t)
	t.Cleanup(llmui.ForgetFailures)
	from := func(address string) http.Header {
		return http.Header{"X-Forwarded-For": {address}, "X-Forwarded-Proto": {"https"}}
	}
	for range 6 {
		do(t, http.MethodPost, site+"/api/session", `{"key":"guess"}`, from("192.0.2.1"))
	}
	if resp, _ := do(t, http.MethodPost, site+"/api/session", `{"key":"reader"}`, from("192.0.2.1")); resp.StatusCode != http.StatusTooManyRequests {
		t.Errorf("after wrong keys their address gets %d", resp.StatusCode)
	}
	resp, body := do(t, http.MethodPost, site+"/api/session", `{"key":"reader"}`, from("192.0.2.2"))
	if resp.StatusCode != http.StatusOK || len(resp.Cookies()) != 1 {
		t.Fatalf("another address gets %d: %s", resp.StatusCode, body)
	}
	cookie := resp.Cookies()[0]
	if !cookie.Secure || !strings.HasPrefix(cookie.Name, "__Host-") {
		t.Errorf("behind TLS the cookie is %v", cookie)
	}
	header := from("192.0.2.2")
	header.Set("Cookie", cookie.Name+"="+cookie.Value)
	if resp, body := do(t, http.MethodGet, site+"/api/session", "", header); resp.StatusCode != http.StatusOK {
		t.Errorf("with the cookie: %d %s", resp.StatusCode, body)
	}
}

func TestUsersOfCaddyNeedNoKey(t *testing.T) {
	_, site := newSite(t)
	if resp, _ := do(t, http.MethodGet, site+"/api/session", "", nil); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody answers %d", resp.StatusCode)
	}
	resp, body := do(t, http.MethodGet, site+"/api/session", "", ada)
	if resp.StatusCode != 200 || gjson.Get(body, "data.organization").Str != "acme" || gjson.Get(body, "data.login").Bool() {
		t.Errorf("a user answers %d: %s", resp.StatusCode, body)
	}
	if resp, body := do(t, http.MethodPost, site+"/api/v1/session/query", `{}`, ada); resp.StatusCode != 200 {
		t.Errorf("a user's query answers %d: %s", resp.StatusCode, body)
	}
}

// The address of a view has its name escaped, whatever is in it.
func TestViewsOfAnyName(t *testing.T) {
	_, trusted := newSite(t)
	const view = "/api/v1/view/errors%20%2F%3F%20today%2F"
	if resp, body := do(t, http.MethodPut, trusted+view, `{"screen":"requests","state":""}`, ada); resp.StatusCode != http.StatusOK {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	if _, body := do(t, http.MethodGet, trusted+"/api/v1/view", "", ada); !strings.Contains(body, `"name":"errors /? today/"`) {
		t.Errorf("the views are %s", body)
	}
}

// The libraries are byte for byte those of their packages in the npm registry.
func TestVendoredFiles(t *testing.T) {
	manual, err := os.ReadFile("../../docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("web/vendor/*js")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	slices.Sort(files)
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if line := filepath.Base(name) + "` | `" + hex.EncodeToString(sum[:]); !strings.Contains(string(manual), line) {
			t.Errorf("docs/dependencies.md lacks | `%s` |", line)
		}
	}
}

// A page that opens at once is a promise: what a browser loads of scripts and styles for
// the first screen, and for all screens together.
func TestThePagesAreSmall(t *testing.T) {
	site, _ := newSite(t)
	sizes := make(map[string]int)
	imports := make(map[string][]string)
	total := 0
	err := filepath.WalkDir("web", func(path string, entry os.DirEntry, err error) error {
		extension := filepath.Ext(path)
		if err != nil || extension != ".js" && extension != ".mjs" && extension != ".css" {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), "web")
		resp, body := do(t, http.MethodGet, site+name, "", http.Header{"Accept-Encoding": {"gzip"}})
		if resp.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s is not compressed", path)
		}
		sizes[name] = len(body)
		total += len(body)
		text, err := os.ReadFile(path)
		if lines := strings.Count(string(text), "\n"); lines >= 300 {
			t.Errorf("%s has %d lines", path, lines)
		}
		for _, match := range regexp.MustCompile(`from ?"(\.[^"]+)"`).FindAllStringSubmatch(string(text), -1) {
			imports[name] = append(imports[name], pathpkg.Join(pathpkg.Dir(name), match[1]))
		}
		return err
	})
	if err != nil || total > 110_000 {
		t.Errorf("%d bytes of scripts and styles: %v", total, err)
	}
	for _, screen := range []string{"overview", "requests", "sessions", "breakdown", "scores", "routes", "system", "alerts", "bill", "budgets", "control", "keys", "privacy", "mine"} {
		loaded := map[string]bool{"/app.css": true, "/vendor/preact.mjs": true, "/vendor/hooks.mjs": true, "/vendor/htm.mjs": true}
		var load func(name string)
		load = func(name string) {
			if loaded[name] {
				return
			}
			loaded[name] = true
			for _, other := range imports[name] {
				load(other)
			}
		}
		load("/app.js")
		load("/screens/" + screen + ".js")
		first := 0
		for name := range loaded {
			first += sizes[name]
		}
		if first > 45_000 {
			t.Errorf("%s begins with %d bytes", screen, first)
		}
		t.Logf("%s begins with %d bytes of %d", screen, first, total)
	}
}

// Answers of the API are compressed, and a browser that has one gets it only once.
func TestAnswersAreCompressed(t *testing.T) {
	_, site := newSite(t)
	header := http.Header{"X-User": ada["X-User"], "Accept-Encoding": {"gzip"}}
	resp, _ := do(t, http.MethodPost, site+"/api/v1/metrics/query", `{"filter":"all"}`, header)
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("the answer is %d, %v", resp.StatusCode, resp.Header)
	}
	header.Set("If-None-Match", resp.Header.Get("ETag"))
	if resp, _ := do(t, http.MethodPost, site+"/api/v1/metrics/query", `{"filter":"all"}`, header); resp.StatusCode != http.StatusNotModified {
		t.Errorf("asked again, it answers %d", resp.StatusCode)
	}
}

func TestTheStateOfTheStoreIsForItsOperator(t *testing.T) {
	site, trusted := newSite(t)
	session := func(key string) http.Header {
		resp, _ := do(t, http.MethodPost, site+"/api/session", `{"key":"`+key+`"}`, nil)
		return http.Header{"Cookie": {resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value}}
	}
	if resp, body := do(t, http.MethodGet, site+"/api/system", "", session("reader")); resp.StatusCode != 200 || gjson.Get(body, "data.exchanges.seen").Raw != "0" || gjson.Get(body, "data.retention").Raw != "2592000" {
		t.Errorf("the operator gets %d: %s", resp.StatusCode, body)
	}
	if resp, body := do(t, http.MethodGet, site+"/api/system", "", session("acme")); resp.StatusCode != http.StatusForbidden {
		t.Errorf("another organisation gets %d: %s", resp.StatusCode, body)
	}
	if resp, _ := do(t, http.MethodGet, trusted+"/api/system", "", ada); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a trusted user of another organisation gets %d", resp.StatusCode)
	}
	if resp, _ := do(t, http.MethodGet, site+"/api/system", "", nil); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody gets %d", resp.StatusCode)
	}
}

// A word in place of a placeholder would let everybody in.
func TestTrustUserIsAPlaceholder(t *testing.T) {
	if err := (&llmui.Handler{TrustUser: "ada"}).Validate(); err == nil || !strings.Contains(err.Error(), `trust_user "ada" trusts everybody`) {
		t.Errorf("the error is %v", err)
	}
}
