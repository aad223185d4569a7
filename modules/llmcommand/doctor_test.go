package llmcommand

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/reverseproxy"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/stores/storestest"
	_ "github.com/weirhq/weir/modules/llmlog"
	_ "github.com/weirhq/weir/plugins/anthropic"
	"github.com/weirhq/weir/plugins/catalog"
	_ "github.com/weirhq/weir/plugins/echo"
	_ "github.com/weirhq/weir/plugins/openai"
)

// doctor names what is wrong with its fix, and fails where calls are lost; a sound Weir
// has no errors.
func TestDoctor(t *testing.T) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
	}))
	defer provider.Close()
	t.Setenv("ANTHROPIC_API_KEY", "") // restores it
	os.Unsetenv("ANTHROPIC_API_KEY")
	path := filepath.Join(t.TempDir(), "weir.db")
	api, admin, nobody := freeport.Address(t), freeport.Address(t), freeport.Address(t)
	upstream := provider.Listener.Addr().String()
	load := func(grace, providers string) {
		t.Helper()
		config := fmt.Sprintf(`{
			"admin": {"listen": %q, "config": {"persist": false}},
			"logging": {"logs": {"default": {"level": "ERROR"}}},
			"apps": {
				"llm": {"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}}, "keys": [{"secret": "secret"}], "providers": [%s]},
				"http": {%s"servers": {"api": {"listen": [%q], "automatic_https": {"disable": true}, "routes": [
					{"match": [{"path": ["/proxy/*"]}], "handle": [{"handler": "subroute", "routes": [{"handle": [
						{"handler": "llm_log"}, {"handler": "reverse_proxy", "upstreams": [{"dial": %q}, {"dial": %q}]}
					]}]}]},
					{"handle": [{"handler": "llm_otlp"}, {"handler": "llm_query"}]}
				]}}}
			}
		}`, admin, path, providers, grace, api, upstream, provider.Listener.Addr())
		if err := caddy.Load([]byte(config), true); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { storestest.Stop(t) })

	load(`"grace_period": "1s",`, `{"label": "echo"}`)
	var out bytes.Buffer
	if _, err := run(t.Context(), doctorCommand, &out, "--admin", admin); err != nil || !strings.Contains(out.String(), "ok      store default: takes records; 0 wait") ||
		!strings.Contains(out.String(), "prices: are of "+catalog.Default().Version()) {
		t.Fatalf("of a sound one: %v\n%s", err, &out)
	}

	upstream = nobody
	load("", fmt.Sprintf(`{"label": "openai", "api_key": "k", "base_url": "%s/v1"}, {"label": "anthropic"}, {"label": "lab", "api": {"kind": "openai"}, "api_key": "k", "base_url": "http://weir:secret@%s"}`, provider.URL, nobody))
	out.Reset()
	_, err := run(t.Context(), doctorCommand, &out, "--admin", admin)
	if fmt.Sprint(err) != "2 errors" {
		t.Errorf("the error is %v", err)
	}
	for _, want := range []string{
		"warning provider anthropic: ANTHROPIC_API_KEY is not set: calls fail, except those of organisations with credentials of their own\n        set ANTHROPIC_API_KEY where Weir is started, or api_key",
		"ok      provider openai: answers in ", "warning clock: differs by 1h0m", "that of the provider openai\n        run an NTP client",
		"error   upstream " + nobody + ": dial tcp ", "ok      upstream " + provider.Listener.Addr().String() + ": takes connections",
		"error   provider lab: …@" + nobody + " does not answer: ", "warning stopping: a provider that hangs keeps Weir from ending\n        set the global option grace_period",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it says\n%s\nwant %q", &out, want)
		}
	}
	out.Reset()
	if _, err := run(t.Context(), doctorCommand, &out, "--admin", admin, "--format", "json"); err == nil || !gjson.Valid(out.String()) || gjson.Get(out.String(), "findings.#(level=error)#.about").Raw != fmt.Sprintf(`["provider lab","upstream %s"]`, nobody) {
		t.Errorf("as JSON: %v %s", err, &out)
	}

	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path+".segments", "credits"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	upstream = provider.Listener.Addr().String()
	load(`"grace_period": "1s",`, `{"label": "echo"}`)
	out.Reset()
	if _, err := run(t.Context(), doctorCommand, &out, "--admin", admin); err == nil || !strings.Contains(out.String(), "error   store default: calls that credits pay for are refused: ") {
		t.Errorf("of damaged credits: %v\n%s", err, &out)
	}

	var spans []string // two aggregates of the AI SDK, one of a kind that nobody knows, and one that speaks of no model
	for n, attribute := range []string{`"ai.operationId","value":{"stringValue":"ai.generateText"}`, `"ai.operationId","value":{"stringValue":"ai.streamText"}`, `"gen_ai.usage.input_tokens","value":{"intValue":"10"}`, `"http.route","value":{"stringValue":"/"}`} {
		spans = append(spans, fmt.Sprintf(`{"traceId":"%032x","spanId":"%016[1]x","name":"work","startTimeUnixNano":"%d","endTimeUnixNano":"%[2]d","attributes":[{"key":%s}]}`, n+1, time.Now().UnixNano(), attribute))
	}
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+api+"/v1/traces", strings.NewReader(`{"resourceSpans":[{"scopeSpans":[{"scope":{"name":"ai"},"spans":[`+strings.Join(spans, ",")+`]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Service-Spans"); !strings.Contains(got, "ignored=4") {
		t.Fatalf("of spans that are no calls: %s, %q", resp.Status, got)
	}
	out.Reset()
	_, _ = run(t.Context(), doctorCommand, &out, "--admin", admin)
	if want := "warning OpenTelemetry of AI SDK: 2 aggregate spans, 0 of calls that another span reports, 1 unknown\n        unknown spans name"; !strings.Contains(out.String(), want) {
		t.Errorf("of spans that are no calls, it says\n%s\nwant %q", &out, want)
	}
}
