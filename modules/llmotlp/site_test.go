package llmotlp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/storage/journal"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/modules/internal/stores/storestest"
	_ "github.com/weirhq/weir/modules/llmecho"
	_ "github.com/weirhq/weir/modules/llmlog"
	_ "github.com/weirhq/weir/modules/llmotlp"
	_ "github.com/weirhq/weir/modules/llmquery"
	_ "github.com/weirhq/weir/storage/sqlite"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of spans in a small heap
	m.Run()
}

// site is a running Caddy that takes spans and answers questions about the
// records.
type site struct {
	t   testing.TB
	url string
	dir string

	config string
}

const bound = 1 << 20

// newSite starts a site. What is given goes into its default store; ADDRESS in it
// is the site's own.
func newSite(t testing.TB, store string) *site {
	t.Helper()
	dir := t.TempDir()
	address := freeport.Address(t)
	config := fmt.Sprintf(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "ERROR", "exclude": ["http.handlers.llm_otlp", "llm.store.default"]}}},
		"apps": {
			"llm": {
				"stores": {
					"default": {%s"storage": {"backend": "sqlite", "path": %q}},
					"eu": {"storage": {"backend": "sqlite", "path": %q}}
				},
				"header_prefixes": ["Helicone"],
				"keys": [{"secret": "root"}, {"secret": "reader", "scopes": ["query"]}, {"secret": "logger", "scopes": ["log"]}],
				"orgs": {
					"acme": {"keys": [{"secret": "acme"}]},
					"europe": {"store": "eu", "keys": [{"secret": "europe"}]}
				}
			},
			"http": {"servers": {"api": {
				"listen": [%q], "automatic_https": {"disable": true},
				"routes": [
					{"match": [{"path": ["/v1/chat/completions"]}], "handle": [{"handler": "llm_log", "provider": "echo"}, {"handler": "llm_echo"}]},
					{"handle": [{"handler": "llm_otlp", "max_request": %d}, {"handler": "llm_query"}, {"handler": "static_response", "status_code": 418}]}
				]
			}}}
		}
	}`, strings.ReplaceAll(store, "ADDRESS", address), filepath.Join(dir, "weir.db"), filepath.Join(dir, "eu.db"), address, 12*bound)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	return &site{t, "http://" + address, dir, config}
}

// send posts a body; header are names and values.
func (s *site) send(key string, body []byte, header ...string) (*http.Response, []byte) {
	s.t.Helper()
	r, err := http.NewRequest("POST", s.url+"/v1/traces", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return s.do(r)
}

func (s *site) do(r *http.Request) (*http.Response, []byte) {
	s.t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, answer
}

// restart stops Weir and starts it again.
func (s *site) restart() {
	s.t.Helper()
	if err := caddy.Stop(); err != nil {
		s.t.Fatal(err)
	}
	if err := caddy.Load([]byte(s.config), true); err != nil {
		s.t.Fatal(err)
	}
}

// take sends a JSON request that must be taken whole.
func (s *site) take(body []byte) {
	s.t.Helper()
	if response, answer := s.send("root", body); response.StatusCode != http.StatusOK || string(answer) != "{}" {
		s.t.Fatalf("%s: %s", response.Status, answer)
	}
}

// records are those that a key may see, the oldest first.
func (s *site) records(key string) []gjson.Result {
	s.t.Helper()
	if err := s.journal().Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequest("POST", s.url+"/v1/request/query", strings.NewReader(`{"filter":"all","limit":1000,"includeInputs":true,"sort":{"created_at":"asc"}}`))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	response, answer := s.do(r)
	if response.StatusCode != http.StatusOK || !json.Valid(answer) {
		s.t.Fatalf("%s: %s", response.Status, answer)
	}
	return gjson.GetBytes(answer, "data").Array()
}

func (s *site) journal() *journal.Journal {
	s.t.Helper()
	for _, open := range stores.InUse() {
		if open.Name() == stores.DefaultName {
			return open.Opened()
		}
	}
	s.t.Fatal("no store is open")
	return nil
}
