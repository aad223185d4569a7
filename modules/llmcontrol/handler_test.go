package llmcontrol_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage/control"
	ledgers "github.com/weirhq/weir/storage/credits"

	"github.com/weirhq/weir/modules/internal/stores/storestest"
	_ "github.com/weirhq/weir/modules/standard"
)

// site is a Weir with two organisations, each with an administrator.
type site struct {
	t        *testing.T
	dir, url string
	config   []byte
}

// newSite serves a site, with more lines of the option llm.
func newSite(t *testing.T, more ...string) *site {
	t.Helper()
	s := &site{t: t, dir: t.TempDir()}
	address := freeport.Address(t)
	s.url = "http://" + address
	text := fmt.Sprintf(`{
		admin off
		persist_config off
		auto_https off
		log {
			output file %[1]s/log
			level DEBUG
			format llm
		}
		llm {
			store sqlite %[1]s/weir.db
			provider echo
			provider second echo
			%[3]s
			org acme {
				key acme-admin admin query
				key acme-all
			}
			org globex {
				credits 2.50
				budget everybody 3.50 month {
					timezone Europe/Berlin
				}
				budget one 2 total {
					per key
				}
				budget run 1 total {
					per tree
				}
				key globex-admin admin
				key globex-agent gateway
			}
		}
	}
	http://%[2]s {
		bind 127.0.0.1
		handle_path /proxy/* {
			llm_log echo {
				require_key
			}
			llm_echo
		}
		handle_path /ui/* {
			llm_ui
		}
		llm_control
		llm_gateway
		llm_query
		llm_not_found
	}`, s.dir, address, strings.Join(more, "\n"))
	var err error
	if s.config, _, err = caddyconfig.GetAdapter("caddyfile").Adapt([]byte(text), nil); err != nil {
		t.Fatal(err)
	}
	s.load()
	t.Cleanup(func() { storestest.Stop(t) })
	return s
}

func (s *site) load() {
	s.t.Helper()
	if err := caddy.Load(s.config, true); err != nil {
		s.t.Fatal(err)
	}
}

// as sends a request with a key.
func (s *site) as(key, method, path, body string) (int, gjson.Result) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Close = true // a reload resets the connections that wait for a request
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Service-Auth", "Bearer "+key)
	}
	r.Header.Set("Service-User-Id", "claimed")
	r.Header.Set("Service-Property-Team", "claimed")
	resp, err := http.DefaultClient.Do(r)
	// After a reload, the server that stops resets what waits at its socket, and closes what it
	// has accepted and not read (net/http's conn.serve): no handler has seen the request.
	for try := 0; (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)) && try < 3; try++ {
		r.Body, _ = r.GetBody()
		resp, err = http.DefaultClient.Do(r)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, gjson.ParseBytes(text)
}

// must is as for what has to succeed, and returns its data.
func (s *site) must(key, method, path, body string) gjson.Result {
	s.t.Helper()
	status, answer := s.as(key, method, path, body)
	if status/100 != 2 {
		s.t.Fatalf("%s %s: %d %s", method, path, status, answer.Raw)
	}
	return answer.Get("data")
}

// call asks a model through the gateway.
func (s *site) call(key, model string) (int, gjson.Result) {
	s.t.Helper()
	return s.as(key, "POST", "/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`)
}

func TestLifeOfAKey(t *testing.T) {
	s := newSite(t)
	created := s.must("acme-admin", "POST", "/v1/keys", `{"name":"agents","owner":"team blue","project":"search","user":"ada","scopes":["gateway","log"],"properties":{"Team":"blue"}}`)
	id, secret := created.Get("id").Str, created.Get("secret").Str
	if !strings.HasPrefix(id, "key_") || !strings.HasPrefix(secret, "weir_") || created.Get("organization").Str != "acme" || created.Get("secrets.0.last4").Str != secret[len(secret)-4:] {
		t.Fatal(created.Raw)
	}
	if status, answer := s.call(secret, "echo/echo-1"); status != http.StatusOK {
		t.Fatalf("a call: %d %s", status, answer.Raw)
	}
	if status, answer := s.as(secret, "POST", "/proxy/v1/chat/completions", `{"model":"echo-1","messages":[{"role":"user","content":"hi"}]}`); status != http.StatusOK {
		t.Fatalf("a call through the proxy: %d %s", status, answer.Raw)
	}
	if own := s.must(secret, "GET", "/v1/key", ""); own.Get("id").Str != id || own.Get("scopes").Raw != `["gateway","log"]` || own.Get("project").Str != "search" {
		t.Error(own.Raw)
	}
	for _, store := range stores.InUse() {
		if err := store.Opened().Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	records := s.must("acme-admin", "POST", "/v1/request/query-clickhouse", `{"filter":{"request_response_rmt":{"key_id":{"equals":"`+id+`"}}}}`)
	if records.Get("#").Int() != 2 {
		t.Error(records.Raw)
	}
	for _, r := range records.Array() {
		if r.Get("project").Str != "search" || r.Get("request_user_id").Str != "ada" || r.Get("properties.Team").Str != "blue" || r.Get("organization_id").Str != "acme" || r.Get("verified_by").Str != "key" {
			t.Error(r.Raw)
		}
	}

	rotated := s.must("acme-admin", "POST", "/v1/keys/"+id+"/rotate", `{"overlap_seconds":3600}`)
	next := rotated.Get("secret").Str
	opens := func(secret string, want bool) {
		t.Helper()
		status, answer := s.call(secret, "echo/echo-1")
		if want != (status == http.StatusOK) || !want && status != http.StatusUnauthorized {
			t.Errorf("%d %s", status, answer.Raw)
		}
	}
	opens(secret, true)
	opens(next, true)
	last := s.must("acme-admin", "POST", "/v1/keys/"+id+"/rotate", `{"overlap_seconds":0}`).Get("secret").Str
	opens(secret, false)
	opens(next, false)
	opens(last, true)
	s.must("acme-admin", "PATCH", "/v1/keys/"+id, `{"disabled":true}`)
	opens(last, false)
	s.must("acme-admin", "PATCH", "/v1/keys/"+id, `{"disabled":false,"expires_at":"`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`)
	opens(last, true)
	s.load()
	opens(last, true)
	s.must("acme-admin", "PATCH", "/v1/keys/"+id, `{"expires_at":"2020-01-01T00:00:00Z"}`)
	opens(last, false)
	kept := s.must("acme-admin", "PATCH", "/v1/keys/"+id, `{"expires_at":null,"properties":{"Area":"x"}}`)
	opens(last, true)
	if kept.Get("name").Str != "agents" || kept.Get("properties").Raw != `{"Area":"x"}` {
		t.Errorf("what was not named has changed: %s", kept.Raw)
	}
	s.must("acme-admin", "DELETE", "/v1/keys/"+id, "")
	opens(last, false)
	if status, _ := s.as("acme-admin", "GET", "/v1/keys/"+id, ""); status != http.StatusNotFound {
		t.Errorf("a deleted key answers %d", status)
	}

	events := s.must("acme-admin", "GET", "/v1/audit?key="+id+"&limit=3", "")
	if events.Get("items.#").Int() != 3 || events.Get("items.0.action").Str != "key.deleted" || events.Get("items.0.before.name").Str != "agents" || events.Get("items.0.after").Type != gjson.Null ||
		!strings.HasPrefix(events.Get("items.0.actor.key").Str, "sha256:") || events.Get("items.0.actor.address").Str != "127.0.0.1" {
		t.Error(events.Raw)
	}
	rest := s.must("acme-admin", "GET", "/v1/audit?key="+id+"&before="+events.Get("next").Str, "")
	if n := rest.Get("items.#").Int(); n != 5 || rest.Get("items.4.action").Str != "key.created" || rest.Get("next").Type != gjson.Null {
		t.Errorf("%d older events: %s", n, rest.Raw)
	}

	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, secret := range []string{secret, next, last} {
			if strings.Contains(string(text), secret[5:]) {
				t.Errorf("%s has a secret", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A key reaches neither what its scopes leave out, nor another organisation.
func TestWhoMayNot(t *testing.T) {
	s := newSite(t)
	created := s.must("acme-admin", "POST", "/v1/keys", `{"name":"member","scopes":["gateway","query","write","log"]}`)
	id, member := created.Get("id").Str, created.Get("secret").Str
	for _, c := range []struct{ method, path, body string }{
		{"POST", "/v1/keys", `{"name":"mine","scopes":["admin"]}`},
		{"GET", "/v1/keys", ""},
		{"GET", "/v1/keys/" + id, ""},
		{"PATCH", "/v1/keys/" + id, `{"scopes":["admin"]}`},
		{"DELETE", "/v1/keys/" + id, ""},
		{"POST", "/v1/keys/" + id + "/rotate", "{}"},
		{"GET", "/v1/audit", ""},
		{"GET", "/v1/budgets", ""},
	} {
		for key, want := range map[string]int{"": 401, "weir_unknown": 401, member: 403, "acme-all": 403} {
			if status, answer := s.as(key, c.method, c.path, c.body); status != want {
				t.Errorf("%s %s: %d %s, want %d", c.method, c.path, status, answer.Raw, want)
			}
		}
		if !strings.Contains(c.path, id) {
			continue
		}
		if status, answer := s.as("globex-admin", c.method, c.path, c.body); status != http.StatusNotFound || strings.Contains(answer.Raw, "member") {
			t.Errorf("another organisation: %s %s: %d %s", c.method, c.path, status, answer.Raw)
		}
	}
	for _, path := range []string{"/v1/keys", "/v1/audit", "/v1/audit?key=" + id} {
		if list := s.must("globex-admin", "GET", path, ""); list.Get("items").Raw != "[]" {
			t.Errorf("another organisation: %s", list.Raw)
		}
	}
	if status, _ := s.as(member, "PUT", "/v1/keys/"+id, "{}"); status != http.StatusMethodNotAllowed {
		t.Errorf("PUT: %d", status)
	}
	if list := s.must("acme-admin", "GET", "/v1/keys", ""); list.Get("items.#").Int() != 1 {
		t.Error(list.Raw)
	}
}

// Null where a stage stands is refused at each door.
func TestNullStages(t *testing.T) {
	s := newSite(t)
	const budget = `{"name":"b","limit":"1","stages":[null]}`
	for path, body := range map[string]string{
		"/v1/budgets":     budget,
		"/v1/budgets/try": `{"from":"2026-11-01T00:00:00Z","budget":` + budget + `}`,
		"/v1/whatif":      `{"filter":"all","policy":{"models":[{"model":"m"}],"budgets":[` + budget + `]}}`,
	} {
		if status, answer := s.as("acme-admin", "POST", path, body); status != http.StatusBadRequest || !strings.Contains(answer.Raw, "a stage is null") {
			t.Errorf("%s: %d %s", path, status, answer.Raw)
		}
	}
}

func TestModelsOfAKey(t *testing.T) {
	s := newSite(t)
	create := func(settings string) string {
		return s.must("acme-admin", "POST", "/v1/keys", `{"name":"x","scopes":["gateway","log"],`+settings+`}`).Get("secret").Str
	}
	for settings, allowed := range map[string][]string{
		`"models":["echo-1"]`:                        {"echo/echo-1", "second/echo-1"},
		`"models":["second/*"]`:                      {"second/echo-1", "second/echo-2"},
		`"providers":["second"]`:                     {"second/echo-1", "second/echo-2"},
		`"providers":["second"],"models":["echo-2"]`: {"second/echo-2"},
		`"providers":["openai"]`:                     nil,
		`"models":["echo-*"],"providers":["echo"]`:   {"echo/echo-1", "echo/echo-2"},
	} {
		key := create(settings)
		for _, model := range []string{"echo/echo-1", "echo/echo-2", "second/echo-1", "second/echo-2"} {
			status, answer := s.call(key, model)
			if want := slices.Contains(allowed, model); want != (status == http.StatusOK) || !want && (status != http.StatusForbidden || answer.Get("error.code").Str != "model_not_allowed") {
				t.Errorf("%s: %s: %d %s", settings, model, status, answer.Raw)
			}
		}
	}
	one := create(`"models":["echo-1"]`)
	for more, refused := range map[string]int{
		`"models":["echo-2"]`:    http.StatusBadRequest,
		`"fallbacks":["echo-2"]`: http.StatusBadRequest,
		`"mod\u0065ls":["e"]`:    http.StatusBadRequest,
		`"tools":[{"type":"image_generation","model":"echo-2"}]`: http.StatusForbidden,
		`"tools":[],"tools":[{"type":"x","model":"echo-2"}]`:     http.StatusBadRequest,
		`"tools":[{"type":"image_generation","model":"echo-1"}]`: http.StatusOK,
	} {
		if status, answer := s.as(one, "POST", "/v1/responses", `{"model":"echo/echo-1","input":"hi",`+more+`}`); status != refused {
			t.Errorf("%s: %d %s", more, status, answer.Raw)
		}
	}
	proxied := func(key string) int {
		status, _ := s.as(key, "POST", "/proxy/v1/chat/completions", `{"model":"echo-1","messages":[{"role":"user","content":"hi"}]}`)
		return status
	}
	if any, one := proxied(create(`"owner":"x"`)), proxied(create(`"models":["echo-1"]`)); any != http.StatusOK || one != http.StatusForbidden {
		t.Errorf("through the proxy: %d, and with models %d", any, one)
	}
}

// A key of some models uploads files, and makes batches of calls that name these models alone.
func TestBatchesOfAKey(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/files" {
			fmt.Fprintf(w, `{"id":"file-%s","object":"file","purpose":"batch"}`, uuid.NewString())
			return
		}
		_, _ = io.WriteString(w, `{"id":"batch_1","object":"batch","status":"validating"}`)
	}))
	t.Cleanup(upstream.Close)
	s := newSite(t, "provider openai {\nbase_url "+upstream.URL+"\napi_key x\n}")
	create := func(settings string) string {
		return s.must("acme-admin", "POST", "/v1/keys", `{"name":"x","scopes":["gateway"],`+settings+`}`).Get("secret").Str
	}
	line := func(body string) string {
		return `{"custom_id":"a","method":"POST","url":"/v1/responses","body":{` + body + `,"input":"hi","max_output_tokens":100}}` + "\n"
	}
	mini, other := line(`"model":"gpt-4o-mini"`), line(`"model":"gpt-4o"`)
	for _, c := range []struct {
		settings, file string
		uploads, makes int
	}{
		{`"models":["gpt-4o-mini"]`, mini + mini, http.StatusOK, http.StatusOK},
		{`"models":["openai/gpt-4o-mini"],"providers":["openai"]`, mini, http.StatusOK, http.StatusOK},
		{`"models":["gpt-4o-mini"]`, mini + other, http.StatusOK, http.StatusForbidden},
		{`"models":["gpt-4o-mini"]`, mini + "{}\n", http.StatusOK, http.StatusForbidden},
		{`"models":["gpt-4o-mini"]`, line(`"model":"gpt-4o-mini","models":["gpt-4o"]`), http.StatusOK, http.StatusForbidden},
		{`"models":["gpt-4o-mini"]`, line(`"model":"gpt-4o-mini","model":"gpt-4o"`), http.StatusOK, http.StatusForbidden},
		{`"models":["gpt-4o-mini"]`, line(`"model":"gpt-4o-mini","tools":[{"type":"image_generation","model":"gpt-image-1"}]`), http.StatusOK, http.StatusForbidden},
		{`"models":["gpt-4o-mini","gpt-4o"]`, mini + other, http.StatusOK, http.StatusOK},
		{`"providers":["echo"]`, mini, http.StatusForbidden, 0},
		{`"owner":"x"`, mini + "{}\n", http.StatusOK, http.StatusOK},
	} {
		key := create(c.settings)
		r, err := http.NewRequestWithContext(t.Context(), "POST", s.url+"/v1/files?provider=openai", strings.NewReader(
			"--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n"+c.file+"\r\n--x--\r\n"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "multipart/form-data; boundary=x")
		r.Header.Set("Authorization", "Bearer "+key)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != c.uploads {
			t.Errorf("%s uploads %s: %d %s, %v", c.settings, c.file, resp.StatusCode, text, err)
		}
		if c.uploads != http.StatusOK {
			continue
		}
		made := fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/responses","completion_window":"24h"}`, gjson.GetBytes(text, "id").Str)
		if status, answer := s.as(key, "POST", "/v1/batches", made); status != c.makes || status == http.StatusForbidden && answer.Get("error.code").Str != "model_not_allowed" {
			t.Errorf("%s makes a batch of %s: %d %s", c.settings, c.file, status, answer.Raw)
		}
	}
}

// A key of some models or providers makes batches of Messages that name what it may call, and a
// name that stands for several providers goes to the one that the key may use.
func TestMessageBatchesOfAKey(t *testing.T) {
	upstream := func(id string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"id":"`+id+`","type":"message_batch","processing_status":"in_progress"}`)
		}))
		t.Cleanup(server.Close)
		return server.URL
	}
	s := newSite(t, "provider anthropic {\nbase_url "+upstream("of-anthropic")+"\napi_key x\n}\nprovider other anthropic {\nbase_url "+upstream("of-other")+"\napi_key x\n}\nalias both anthropic/claude-haiku-4-5 other/claude-haiku-4-5")
	batch := func(more string, models ...string) string {
		var calls []string
		for i, model := range models {
			calls = append(calls, fmt.Sprintf(`{"custom_id":"%d","params":{"model":%q,"max_tokens":9,"messages":[]%s}}`, i, model, more))
		}
		return `{"requests":[` + strings.Join(calls, ",") + `]}`
	}
	for _, c := range []struct {
		settings, body string
		status         int
		made           string
	}{
		{`"models":["claude-haiku-4-5"]`, batch("", "claude-haiku-4-5", "both"), http.StatusOK, "of-anthropic."},
		{`"models":["claude-haiku-4-5"]`, batch("", "both", "anthropic/claude-opus-4-5"), http.StatusForbidden, ""},
		{`"models":["claude-new-9"]`, batch("", "anthropic/claude-new-9"), http.StatusOK, "of-anthropic."},
		{`"models":["claude-haiku-4-5"]`, batch(`,"fallbacks":["claude-opus-4-5"]`, "both"), http.StatusBadRequest, ""},
		{`"models":["claude-haiku-4-5"]`, batch(`,"tools":[{"type":"advisor_20260301","name":"advisor","model":"claude-opus-4-5"}]`, "both"), http.StatusForbidden, ""},
		{`"providers":["other"]`, batch("", "both", "other/claude-opus-4-5"), http.StatusOK, "of-other."},
		{`"providers":["other"]`, batch("", "both", "anthropic/claude-opus-4-5"), http.StatusForbidden, ""},
		{`"models":["other/*"]`, batch("", "both"), http.StatusOK, "of-other."},
		{`"providers":["echo"]`, batch("", "both"), http.StatusForbidden, ""},
	} {
		key := s.must("acme-admin", "POST", "/v1/keys", `{"name":"x","scopes":["gateway"],`+c.settings+`}`).Get("secret").Str
		status, answer := s.as(key, "POST", "/v1/messages/batches", c.body)
		if status != c.status || !strings.HasPrefix(answer.Get("id").Str, c.made) || status == http.StatusForbidden && answer.Get("error.details.error_code").Str != "model_not_allowed" {
			t.Errorf("%s makes a batch of %s: %d %s", c.settings, c.body, status, answer.Raw)
		}
		if made := answer.Get("id").Str; made != "" {
			if status, answer := s.as(key, "GET", "/v1/messages/batches/"+made, ""); status != http.StatusOK || answer.Get("id").Str != made {
				t.Errorf("%s asks for its batch: %d %s", c.settings, status, answer.Raw)
			}
		}
	}
}

func TestMalformedCalls(t *testing.T) {
	s := newSite(t)
	id := s.must("acme-admin", "POST", "/v1/keys", `{"name":"x","scopes":["query"]}`).Get("id").Str
	for _, c := range []struct{ method, path, body, says string }{
		{"POST", "/v1/keys", ``, "name"},
		{"POST", "/v1/keys", `[]`, "the body: an object is expected, not an array"},
		{"POST", "/v1/keys", `{"name":7}`, "name: a string is expected, not a number"},
		{"POST", "/v1/keys", `{"name":"x"}`, "scopes"},
		{"POST", "/v1/keys", `{"name":"x","scopes":["root"]}`, "no scope root"},
		{"POST", "/v1/keys", `{"name":"x","scopes":["query"],"scope":"admin"}`, `unknown field "scope"`},
		{"POST", "/v1/keys", `{"name":"x","scopes":["query"]}{}`, "something follows the value"},
		{"POST", "/v1/keys", `{"name":"x","scopes":["query"],"scopes":["admin"]}`, `duplicate key "scopes"`},
		{"POST", "/v1/keys", `{"name":"x","scopes":["query"],"Scopes":["admin"]}`, `unknown field "Scopes"`},
		{"POST", "/v1/keys", "{\"name\":\"\xff\",\"scopes\":[\"query\"]}", "UTF-8"},
		{"POST", "/v1/keys", `{"name":"x\u001b[2J","scopes":["query"]}`, "control character"},
		{"POST", "/v1/keys", `{"name":"x","scopes":["query"],"properties":{"Team":"a\nb"}}`, "control character"},
		{"POST", "/v1/keys", `{"name":"x","scopes":["query"],"properties":{"api_key":"sk-1"}}`, "named like a credential"},
		{"POST", "/v1/keys", `{"name":"x","scopes":["query"],"properties":{"Service-Session-Id":"s"}}`, "for calls to say"},
		{"POST", "/v1/keys", `{"name":"x","scopes":["query"],"id":"key_mine"}`, `unknown field "id"`},
		{"POST", "/v1/keys", `{"name":"` + strings.Repeat("x", 257) + `","scopes":["query"]}`, "name"},
		{"POST", "/v1/keys", `{"name":"x","scopes":["query"],"models":[""]}`, "empty"},
		{"PATCH", "/v1/keys/" + id, `{"scopes":[]}`, "scopes"},
		{"PATCH", "/v1/keys/" + id, `{"expires_at":"soon"}`, "is no timestamp"},
		{"PATCH", "/v1/keys/" + id, `{"organization":"globex"}`, "unknown field"},
		{"POST", "/v1/keys/" + id + "/rotate", `{"overlap_seconds":-1}`, "overlap_seconds"},
		{"GET", "/v1/keys?limit=0", ``, "limit"},
		{"POST", "/v1/keys", `{"name":"x","scopes":["gateway"],"trust":["everything"]}`, "trust: any of user"},
		{"GET", "/v1/keys?org=globex", ``, "no such option"},
		{"GET", "/v1/audit?limit=1000", ``, "limit"},
	} {
		if status, answer := s.as("acme-admin", c.method, c.path, c.body); status != http.StatusBadRequest || !strings.Contains(answer.Get("error").Str, c.says) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, status, answer.Raw)
		}
	}
	if k := s.must("acme-admin", "GET", "/v1/keys/"+id, ""); k.Get("scopes").Raw != `["query"]` {
		t.Errorf("a refused change was made: %s", k.Raw)
	}
}

// The dashboard opens with a key that was created while Weir runs, until that ends.
func TestDashboard(t *testing.T) {
	s := newSite(t)
	created := s.must("acme-admin", "POST", "/v1/keys", `{"name":"x","scopes":["query"]}`)
	resp, err := http.Post(s.url+"/ui/api/session", "application/json", strings.NewReader(`{"key":"`+created.Get("secret").Str+`"}`))
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status, err)
	}
	defer resp.Body.Close()
	asks := func() int {
		r, err := http.NewRequest("GET", s.url+"/ui/api/v1/view", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.AddCookie(resp.Cookies()[0])
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		return answer.StatusCode
	}
	if status := asks(); status != http.StatusOK {
		t.Errorf("the session answers %d", status)
	}
	s.must("acme-admin", "DELETE", "/v1/keys/"+created.Get("id").Str, "")
	if status := asks(); status != http.StatusUnauthorized {
		t.Errorf("after the end of its key the session answers %d", status)
	}
}

// A page begins at what the organisation has: neither a key that was deleted meanwhile nor one
// of another organisation is taken for the beginning or the end of the list.
func TestPagesBeginSomewhere(t *testing.T) {
	s := newSite(t)
	create := func(admin string) string {
		return s.must(admin, "POST", "/v1/keys", `{"name":"x","scopes":["query"]}`).Get("id").Str
	}
	first, deleted, last, others := create("acme-admin"), create("acme-admin"), create("acme-admin"), create("globex-admin")
	s.must("acme-admin", "DELETE", "/v1/keys/"+deleted, "")
	event := s.must("globex-admin", "GET", "/v1/audit", "").Get("items.0.id").Str
	for _, path := range []string{"/v1/keys?after=" + deleted, "/v1/keys?after=" + others, "/v1/keys?after=x", "/v1/audit?before=" + event, "/v1/audit?before=x"} {
		if status, answer := s.as("acme-admin", "GET", path, ""); status != http.StatusBadRequest || !strings.Contains(answer.Get("error").Str, "first page") {
			t.Errorf("%s: %d %s", path, status, answer.Raw)
		}
	}
	if page := s.must("acme-admin", "GET", "/v1/keys?after="+first, ""); page.Get("items.#").Int() != 1 || page.Get("items.0.id").Str != last {
		t.Error(page.Raw)
	}
}

// A caller learns the credits of its own organisation, and of no other.
func TestCreditsOfTheCaller(t *testing.T) {
	s := newSite(t)
	credits := func(key string) string { return s.must(key, "GET", "/v1/key", "").Get("credits").Raw }
	if got, want := credits("globex-agent"), `{"balance":2.5,"granted":2.5,"spent":0,"reserved":0}`; got != want {
		t.Errorf("the credits are %s, want %s", got, want)
	}
	if got := credits("acme-all"); got != "null" {
		t.Errorf("an organisation without credits has %s", got)
	}
	app, err := caddy.ActiveContext().App("llm")
	if err != nil {
		t.Fatal(err)
	}
	ctx, id := t.Context(), uuid.New()
	store, err := app.(*llmapp.App).Store(stores.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := store.Credits()
	if err != nil {
		t.Fatal(err)
	}
	call := ledgers.Reservation{ID: id, Org: "globex", Amount: 1_000_000_000, Holds: []ledgers.Hold{{Account: ledgers.Account{Org: "globex"}}}}
	if err := errors.Join(ledger.Reserve(ctx, call), ledger.Charge(ctx, call, 250_000_001)); err != nil {
		t.Fatal(err)
	}
	if got, want := credits("globex-agent"), `{"balance":2.249999999,"granted":2.5,"spent":0.250000001,"reserved":0.749999999}`; got != want {
		t.Errorf("during a call, the credits are %s, want %s", got, want)
	}
	if err := ledger.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if status, answer := s.as("globex-agent", "GET", "/v1/key", ""); status != http.StatusServiceUnavailable || answer.Get("error").Str != "the credits and budgets cannot be read now." {
		t.Errorf("without a ledger: %d %s", status, answer.Raw)
	}
}

// An administrator sees what the budgets of the own organisation count, and any caller what
// counts the own calls.
func TestBudgets(t *testing.T) {
	s := newSite(t)
	if got := s.must("acme-admin", "GET", "/v1/budgets", "").Get("items").Raw; got != "[]" {
		t.Errorf("an organisation without budgets has %s", got)
	}
	app, err := caddy.ActiveContext().App("llm")
	if err != nil {
		t.Fatal(err)
	}
	store, err := app.(*llmapp.App).Store(stores.DefaultName)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := store.Credits()
	if err != nil {
		t.Fatal(err)
	}
	key, err := app.(*llmapp.App).Authenticator().Authenticate(t.Context(), "globex-agent")
	if err != nil {
		t.Fatal(err)
	}
	_, holds, err := app.(*llmapp.App).Money().OfKey(key)
	if err != nil {
		t.Fatal(err)
	}
	r := ledgers.Reservation{ID: uuid.New(), Org: "globex", Amount: 1_000_000_000}
	for _, h := range holds {
		h.Limit = 2_000_000_000
		r.Holds = append(r.Holds, h)
	}
	if err := errors.Join(ledger.Reserve(t.Context(), r), ledger.Charge(t.Context(), r, 250_000_001)); err != nil || len(holds) != 2 {
		t.Fatal(len(holds), err)
	}
	all := s.must("globex-admin", "GET", "/v1/budgets", "").Get("items")
	month := all.Get(`#(name="everybody")`)
	if got, want := month.Get("accounts").Raw, `[{"value":null,"spent":0.250000001,"reserved":0.749999999,"remaining":2.5}]`; got != want || month.Get("limit").Raw != "3.5" || month.Get("window").Str != "month" || !strings.HasSuffix(month.Get("ends_at").Str, "23:00:00.000Z") && !strings.HasSuffix(month.Get("ends_at").Str, "22:00:00.000Z") {
		t.Errorf("the shared budget is %s", month.Raw)
	}
	if one := all.Get(`#(name="one")`); one.Get("accounts.0.value").Str != key.Hash() || one.Get("accounts.0.remaining").Raw != "1" || one.Get("ends_at").Raw != "null" {
		t.Errorf("the budget of each key is %s", one.Raw)
	}
	own := s.must("globex-agent", "GET", "/v1/key", "").Get("budgets")
	if own.Get("#").Int() != 2 || own.Get("1.accounts.0.spent").Raw != "0.250000001" {
		t.Errorf("the caller's budgets are %s", own.Raw)
	}
	if other := s.must("globex-admin", "GET", "/v1/key", "").Get("budgets"); other.Get("1.accounts.0.spent").Raw != "0" || other.Get("0.accounts.0.spent").Raw != "0.250000001" {
		t.Errorf("another caller's budgets are %s", other.Raw)
	}
}

// The turns of a conversation are one run, and another conversation is another.
func TestBudgetsOfRuns(t *testing.T) {
	s := newSite(t)
	ask := func(messages string) string {
		status, answer := s.as("globex-agent", "POST", "/v1/chat/completions", `{"model":"echo/echo-1","max_tokens":50,"messages":[`+messages+`]}`)
		if status != http.StatusOK {
			t.Fatalf("%d %s", status, answer.Raw)
		}
		return answer.Get("choices.0.message").Raw
	}
	runs := func() gjson.Result {
		return s.must("globex-admin", "GET", "/v1/budgets", "").Get(`items.#(name="run")`)
	}
	first := `{"role":"user","content":"find the bug in the parser"}`
	said := ask(first)
	ask(first + "," + said + `,{"role":"user","content":"and mend the bug"}`)
	if got := runs(); got.Get("values").Int() != 1 || got.Get("accounts.0.spent").Num == 0 {
		t.Errorf("one conversation: %s", got.Raw)
	}
	ask(`{"role":"user","content":"write a poem about weirs"}`)
	got := runs()
	if got.Get("values").Int() != 2 {
		t.Errorf("two conversations: %s", got.Raw)
	}
	if sum, credits := got.Get("accounts.0.spent").Num+got.Get("accounts.1.spent").Num, s.must("globex-agent", "GET", "/v1/key", "").Get("credits.spent").Num; math.Abs(sum-credits) > 1e-12 {
		t.Errorf("the runs have spent %g, and the credits %g", sum, credits)
	}
}

// The description has each endpoint, and each field of what they answer.
func TestOpenAPI(t *testing.T) {
	s := newSite(t)
	_, api := s.as("", "GET", "/v1/keys/openapi.json", "")
	described := func(schema string, data gjson.Result) {
		t.Helper()
		properties := api.Get("components.schemas." + schema + ".properties")
		data.ForEach(func(field, _ gjson.Result) bool {
			if !properties.Get(field.Str).Exists() {
				t.Errorf("%s lacks %s", schema, field.Str)
			}
			return true
		})
		if !data.IsObject() || !properties.Exists() {
			t.Errorf("%s is %s", schema, data.Raw)
		}
	}
	full := `{"name":"x","owner":"o","project":"p","user":"u","scopes":["query"],"models":["m"],"providers":["p"],"properties":{"a":"b"},"expires_at":null,"disabled":false}`
	created := s.must("acme-admin", "POST", "/v1/keys", full)
	described("Settings", gjson.Parse(full))
	described("Key", created)
	described("Secret", created.Get("secrets.0"))
	described("Own", s.must(created.Get("secret").Str, "GET", "/v1/key", ""))
	described("Credits", s.must("globex-admin", "GET", "/v1/key", "").Get("credits"))
	page := s.must("acme-admin", "GET", "/v1/keys", "")
	described("KeyPage", page)
	described("Key", page.Get("items.0"))
	events := s.must("acme-admin", "GET", "/v1/audit", "")
	described("EventPage", events)
	described("Event", events.Get("items.0"))
	const admin = "acme-admin"
	project := s.ok(admin, "POST", organization+"projects", `{"name":"described"}`)
	described("Project", project)
	of := organization + "projects/" + project.Get("id").Str
	account := s.ok(admin, "POST", of+"/service_accounts", `{"name":"x"}`)
	described("ServiceAccountCreated", account)
	described("AccountKey", account.Get("api_key"))
	described("ServiceAccount", s.ok(admin, "GET", of+"/service_accounts/"+account.Get("id").Str, ""))
	described("ProjectKey", s.ok(admin, "GET", of+"/api_keys/"+account.Get("api_key.id").Str, ""))
	described("ProjectKeyPage", s.ok(admin, "GET", of+"/api_keys", ""))
	described("ModelPermissions", s.ok(admin, "GET", of+"/model_permissions", ""))
	described("RateLimit", s.ok(admin, "POST", of+"/rate_limits/rl-m", `{"max_requests_per_1_day":5}`))
	described("SpendLimit", s.ok(admin, "POST", of+"/spend_limit", `{"threshold_amount":5,"currency":"USD","interval":"month"}`))
	described("Deleted", s.ok(admin, "DELETE", of+"/spend_limit", ""))
	described("AuditLogPage", s.ok(admin, "GET", organization+"audit_logs", ""))
	described("UsagePage", s.ok(admin, "GET", organization+"costs?start_time=1795000000", ""))
	described("Budget", s.must(admin, "POST", "/v1/budgets", `{"name":"x","limit":"5","since":"2026-11-01"}`))
	for path, methods := range map[string]string{
		"/v1/budgets": "get,post", "/v1/budgets/{name}": "delete,get,patch", organization + "projects/{project}": "get,post",
		organization + "projects/{project}/spend_limit": "delete,get,post", organization + "costs": "get",
		"/v1/keys": "get,post", "/v1/keys/{id}": "delete,get,patch", "/v1/keys/{id}/rotate": "post", "/v1/audit": "get", "/v1/key": "get",
	} {
		var got []string
		api.Get("paths." + gjson.Escape(path)).ForEach(func(method, _ gjson.Result) bool {
			got = append(got, method.Str)
			return true
		})
		slices.Sort(got)
		if strings.Join(got, ",") != methods {
			t.Errorf("%s has %q, want %s", path, got, methods)
		}
	}
}

// A name that nobody knows, such as a misspelt one, is told with the names that are near.
func TestNamesThatNobodyKnows(t *testing.T) {
	s := newSite(t)
	const admin = "acme-admin"
	s.must(admin, "POST", "/v1/keys", `{"name":"x","project":"search","user":"ada","scopes":["gateway"]}`)
	secret := s.must(admin, "POST", "/v1/keys", `{"name":"y","project":"search","user":"ada","scopes":["gateway"],"models":["echo/*"],"providers":["second","openai"]}`)
	if secret.Get("warnings").Exists() {
		t.Error(secret.Raw)
	}
	if status, answer := s.call(secret.Get("secret").Str, "second/echo-1"); status != http.StatusForbidden { // of echo alone
		t.Fatal(status, answer.Raw)
	}
	first := s.must(admin, "POST", "/v1/keys", `{"name":"z","user":"ada","scopes":["gateway"],"properties":{"Team":"blue"}}`).Get("secret").Str
	if status, answer := s.call(first, "echo/echo-1"); status != http.StatusOK {
		t.Fatal(answer.Raw)
	}
	for _, store := range stores.InUse() {
		if err := store.Opened().Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for body, says := range map[string]string{
		`{"project":"serch"}`:                            `["the project \"serch\" did not exist, and is created; did you mean \"search\"?"]`,
		`{"project":"search","models":["second/eco-1"]}`: `["no provider is known to serve the model \"second/eco-1\"; did you mean \"second/echo-1\"?"]`,
		`{"providers":["secand"]}`:                       `["there is no provider \"secand\"; did you mean \"second\"?"]`,
		`{"models":["no-such-maker/*"]}`:                 `["no provider is known to serve the model \"no-such-maker/*\""]`,
	} {
		if got := s.must(admin, "POST", "/v1/keys", `{"name":"n","scopes":["gateway"],`+body[1:]).Get("warnings").Raw; got != says {
			t.Errorf("%s: %s", body, got)
		}
	}
	filter := func(field, operation string) string {
		return `"filter":{"request_response_rmt":{"` + field + `":` + operation + `}}`
	}
	for settings, says := range map[string]string{
		filter("user_id", `{"equals":"ada"}`):              "",
		filter("user_id", `{"equals":"adda"}`):             `["no call has had the user \"adda\" yet; did you mean \"ada\"?"]`,
		filter("user_id", `{"contains":"adda"}`):           "",
		filter("project", `{"equals":"search"}`):           "",
		filter("project", `{"equals":"serach"}`):           `["no call has had the project \"serach\" yet; did you mean \"search\"?"]`,
		filter("provider", `{"equals":"opnai"}`):           `["no call has had the provider \"opnai\" yet"]`,
		filter("model", `{"equals":"eco-1"}`):              `["no call has had the model \"eco-1\" yet; did you mean \"echo-1\"?"]`,
		filter("properties", `{"Team":{"equals":"bleu"}}`): `["no call has had the property Team \"bleu\" yet; did you mean \"blue\"?"]`,
		filter("key_id", `{"equals":"key_none"}`):          `["no call has had the key \"key_none\" yet"]`,
		`"per":"user"`: `["calls without a user share one limit; per key gives each key its own"]`,
		`"per":"key"`:  "",
		filter("user_id", `{"equals":"adb"}`) + `,"per":"property.X"`: `["no call has had the user \"adb\" yet; did you mean \"ada\"?","calls without a X share one limit; per key gives each key its own"]`,
	} {
		made := s.must(admin, "POST", "/v1/budgets", `{"name":"b","limit":"5",`+settings+`}`)
		if got := made.Get("warnings").Raw; got != says {
			t.Errorf("%s: %s", settings, got)
		}
		if again := s.must(admin, "GET", "/v1/budgets/b", ""); again.Get("warnings").Exists() {
			t.Error(again.Raw)
		}
	}
}

// A list of few of many events ends, and says where the next begins.
func TestListsOfFewEventsEnd(t *testing.T) {
	s := newSite(t)
	s.load()
	id := s.must("acme-admin", "POST", "/v1/keys", `{"name":"old","scopes":["query"]}`).Get("id").Str
	for _, open := range stores.InUse() {
		log, err := open.Control()
		if err != nil {
			t.Fatal(err)
		}
		reads := make([]control.Note, 4100)
		for i := range reads {
			reads[i].Object = "requests"
		}
		if err := (&control.Organisation{Log: log, Name: "acme"}).Tell(t.Context(), control.ContentListed, reads...); err != nil {
			t.Fatal(err)
		}
	}
	first := s.must("acme-admin", "GET", "/v1/audit?reads=false", "")
	if first.Get("items.#").Int() != 0 || first.Get("next").Str == "" {
		t.Fatalf("the first 4,000 events have %s", first.Raw)
	}
	rest := s.must("acme-admin", "GET", "/v1/audit?reads=false&before="+first.Get("next").Str, "")
	if rest.Get("items.0.object").Str != id || rest.Get("next").Str != "" {
		t.Errorf("the others have %s", rest.Raw)
	}
	const logs = organization + "audit_logs?event_types[]=api_key.created"
	first = s.ok("acme-admin", "GET", logs, "")
	if first.Get("data.#").Int() != 0 || !first.Get("has_more").Bool() || first.Get("last_id").Str == "" {
		t.Fatalf("the first 4,000 events have %s", first.Raw)
	}
	rest = s.ok("acme-admin", "GET", logs+"&after="+first.Get("last_id").Str, "")
	if rest.Get("data.#").Int() != 1 || rest.Get("has_more").Bool() {
		t.Errorf("the others have %s", rest.Raw)
	}
}

// A budget that the configuration no longer allows is in the list with the reason, among the others.
func TestUnreadableBudgetIsListed(t *testing.T) {
	s := newSite(t, "alias cheap echo-1")
	for _, budget := range []string{`{"name":"a","limit":"5","stages":[{"at":80,"use":"cheap"}]}`, `{"name":"b","limit":"7"}`} {
		s.must("acme-admin", "POST", "/v1/budgets", budget)
	}
	s.config = bytes.ReplaceAll(s.config, []byte(`"cheap"`), []byte(`"dear"`))
	s.load()
	answer := s.must("acme-admin", "GET", "/v1/budgets", "")
	if got := answer.Get("items.#.name").Raw; got != `["a","b"]` {
		t.Fatalf("the list has %s of %s", got, answer.Raw)
	}
	if a := answer.Get("items.0"); a.Get("limit").Type != gjson.Null || !strings.Contains(a.Get("warnings.0").Str, "the budget a cannot be read: ") {
		t.Errorf("the list says %s", a.Raw)
	}
	s.must("acme-admin", "DELETE", "/v1/budgets/a", "")
	if warnings := s.must("acme-admin", "GET", "/v1/budgets", "").Get("items.#.warnings").Raw; warnings != "[]" {
		t.Errorf("then the list warns of %s", warnings)
	}
}
