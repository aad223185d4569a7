// Package examples holds that every example works, and that the commands of the
// documentation do.
package examples

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	_ "github.com/weirhq/weir/modules/standard"
)

// adapt turns an example's Caddyfile into JSON; its warnings are failures.
func adapt(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	config, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(text, map[string]any{"filename": path})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range warnings {
		t.Errorf("%s", w)
	}
	return config
}

func TestProvision(t *testing.T) {
	files, err := filepath.Glob("*/Caddyfile")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "\n\tgrace_period ") {
			t.Errorf("%s sets no grace_period: a provider that hangs would keep it from ending (%v)", file, err)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(file), "go.mod")); err == nil {
			continue // a module of its own, with a test of its own
		}
		t.Run(filepath.Dir(file), func(t *testing.T) {
			t.Setenv("WEIR_DATA", t.TempDir())
			t.Setenv("XDG_DATA_HOME", t.TempDir())
			var config caddy.Config
			if err := json.Unmarshal(adapt(t, file), &config); err != nil {
				t.Fatal(err)
			}
			config.Admin = &caddy.AdminConfig{Disabled: true}
			if err := caddy.Validate(&config); err != nil {
				t.Error(err)
			}
		})
	}
}

// serveWithoutKeys runs an example until the test ends, on a free port, with the keys that
// its configuration has when the environment has none.
func serveWithoutKeys(t *testing.T, config string) (port string) {
	t.Helper()
	port = freeport.Port(t)
	t.Setenv("WEIR_PORT", port)
	t.Setenv("WEIR_ADMIN_PORT", freeport.Port(t))
	t.Setenv("WEIR_DATA", t.TempDir())
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	for _, name := range []string{"WEIR_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"} {
		t.Setenv(name, "") // restores it
		os.Unsetenv(name)
	}
	if err := caddy.Load(adapt(t, config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
	})
	return port
}

// A page of the web reaches this machine by a host name of its own, and knows the quickstart's
// key: only names of the loopback interface are served.
func TestQuickstartServesLoopbackNamesAlone(t *testing.T) {
	port := serveWithoutKeys(t, "quickstart/Caddyfile")
	for host, status := range map[string]int{
		"localhost": http.StatusOK, "127.0.0.1:" + port: http.StatusOK, "[::1]:" + port: http.StatusOK,
		"rebound.example:" + port: http.StatusMisdirectedRequest, "localhost.example": http.StatusMisdirectedRequest,
		"192.168.1.2:" + port: http.StatusMisdirectedRequest,
	} {
		for _, path := range []string{"/v1/models", "/", "/health/live"} {
			r, err := http.NewRequest("GET", "http://127.0.0.1:"+port+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host
			r.Header.Set("Authorization", "Bearer weir-quickstart")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != status {
				t.Errorf("%s%s: %d %s %v, want %d", host, path, resp.StatusCode, body, err, status)
			}
			if status != http.StatusOK && !strings.Contains(gjson.GetBytes(body, "error.message").Str, "localhost") {
				t.Errorf("%s%s: %s", host, path, body)
			}
		}
	}
}

// What nothing serves is an error, and never an answer that looks right: a path, a
// model that does not exist, a label that does not exist, a provider without a key.
func TestQuickstartRefuses(t *testing.T) {
	port := serveWithoutKeys(t, "quickstart/Caddyfile")
	send := func(request, body string) (*http.Response, gjson.Result) {
		method, path, _ := strings.Cut(request, " ")
		r, err := http.NewRequest(method, "http://127.0.0.1:"+port+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer weir-quickstart")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, gjson.ParseBytes(answer)
	}
	for request, says := range map[string]string{
		"GET /dashboard":            "This site has",
		"GET /health":               "This site has",
		"POST /v1/videos":           "This site has",
		"POST /chat/completions":    "Did you mean /v1/chat/completions?",
		"POST //v1/responses":       "Did you mean /v1/responses?",
		"POST /otel/v1/traces":      "Did you mean /v1/traces?",
		"GET /v1/models/gpt-5-mini": "'gpt-5-mini'",
	} {
		resp, body := send(request, "{}")
		if resp.StatusCode != http.StatusNotFound || !strings.Contains(body.Get("error.message").Str, says) {
			t.Errorf("%s: %d %s", request, resp.StatusCode, body.Raw)
		}
	}
	if resp, body := send("POST /v1/request/query/", `{"filter":"all"}`); resp.StatusCode != http.StatusOK || !body.Get("data").IsArray() {
		t.Errorf("a query with a slash behind its path: %d %s", resp.StatusCode, body.Raw)
	}
	for _, path := range []string{"/v1/responses", "/v1/chat/completions", "/v1/messages"} {
		for model, says := range map[string]string{
			"gpt-5-minii":             "The labels of providers are: echo.",
			"claud-haiku-4-5":         "No provider that you can use serves the model",
			"opnai/gpt-4o":            "The labels of providers are: echo.",
			"nobody/gpt-5-mini":       "The labels of providers are: echo.",
			"openai/gpt-5-mini":       "The provider 'openai' has no API key: set OPENAI_API_KEY.",
			"gpt-5-mini":              "The provider 'openai' has no API key: set OPENAI_API_KEY.",
			"google/gemini-2.5-flash": "No provider that you can use serves the model",
		} {
			resp, body := send("POST "+path, fmt.Sprintf(`{"model":%q,"input":"hi","messages":[{"role":"user","content":"hi"}],"max_tokens":9}`, model))
			if resp.StatusCode != http.StatusNotFound || !strings.Contains(body.Get("error.message").Str, says) {
				t.Errorf("%s of %s: %d %s", path, model, resp.StatusCode, body.Raw)
			}
		}
		if resp, body := send("POST "+path+"/", `{"model":"echo/anything","input":"hi","messages":[{"role":"user","content":"hi"}],"max_tokens":9}`); resp.StatusCode != http.StatusOK {
			t.Errorf("%s by the label echo: %d %s", path, resp.StatusCode, body.Raw)
		}
	}
	if _, list := send("GET /v1/models", ""); list.Get("data.#.id").Raw != `["echo-1"]` {
		t.Errorf("the models are %s, want those that can be called alone", list.Get("data.#.id").Raw)
	}
	if resp, model := send("GET /v1/models/echo-1", ""); resp.StatusCode != http.StatusOK || model.Get("object").Str != "model" {
		t.Errorf("a model: %d %s", resp.StatusCode, model.Raw)
	}
}

// changing are the fields whose values are other ones each time.
var changing = regexp.MustCompile(`(^|_)(id|at|ms|created|active)$`)

func compare(t *testing.T, path string, got, want gjson.Result) {
	t.Helper()
	if !want.IsObject() && !want.IsArray() {
		if got.Raw != want.Raw {
			t.Errorf("%s is %s, and %s in the README", path, got.Raw, want.Raw)
		}
		return
	}
	index := 0
	want.ForEach(func(key, value gjson.Result) bool {
		name := key.String()
		if want.IsArray() {
			name = fmt.Sprint(index)
			index++
		}
		member := got.Get(gjson.Escape(name))
		if !member.Exists() {
			t.Errorf("%s%s is in the README alone", path, name)
		} else if !changing.MatchString(name) {
			compare(t, path+name+".", member, value)
		}
		return true
	})
}
