package llmquery_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/freeport"
	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	_ "github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	_ "github.com/caddyserver/caddy/v2/modules/logging"

	"github.com/weirhq/weir/modules/internal/stores/storestest"
	_ "github.com/weirhq/weir/modules/llmquery"
	_ "github.com/weirhq/weir/storage/sqlite"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of short queries in a small heap
	m.Run()
}

// site is a running Caddy with two stores and three organisations, and two more
// stores that are in trouble.
type site struct {
	t   testing.TB
	url string
	dir string // of the stores, and the log
}

func newSite(t testing.TB) *site {
	t.Helper()
	dir := t.TempDir()
	address := freeport.Address(t)
	config := fmt.Sprintf(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "ERROR", "writer": {"output": "file", "filename": %q}}}},
		"apps": {
			"llm": {
				"stores": {
					"default": {"storage": {"backend": "sqlite", "path": %q}},
					"eu": {"storage": {"backend": "sqlite", "path": %q}},
					"slow": {"storage": {"backend": "slow", "dir": %q}},
					"broken": {"storage": {"backend": "broken", "dir": %q}},
					"crowded": {"storage": {"backend": "crowded", "dir": %q}}
				},
				"aliases": {"fast": {"strategy": "weight", "split": "user", "models": [{"model": "openai/gpt-5-mini", "arm": "new", "when": "tokens<100", "set": {"temperature": 0}, "limit": {"max_tokens": 10}}], "shadows": [{"model": "openai/gpt-5-nano", "share": 0.1}]}},
				"providers": [{"label": "openai", "api_key": "none", "api": {"kind": "openai"}}],
				"keys": [{"secret": "root"}, {"secret": "writer", "scopes": ["write"]}, {"secret": "reader", "scopes": ["query"]}],
				"orgs": {
					"acme": {"keys": [{"secret": "acme"}]},
					"europe": {"store": "eu", "keys": [{"secret": "europe"}]},
					"slow": {"store": "slow", "keys": [{"secret": "slow"}]},
					"broken": {"store": "broken", "keys": [{"secret": "broken"}]},
					"crowded": {"store": "crowded", "keys": [{"secret": "crowded"}]}
				}
			},
			"http": {"servers": {"api": {
				"listen": [%q], "automatic_https": {"disable": true},
				"routes": [
					{"match": [{"path": ["/eu/*"]}], "handle": [{"handler": "subroute", "routes": [
						{"handle": [{"handler": "rewrite", "strip_path_prefix": "/eu"}, {"handler": "llm_query", "store": "eu"}]}]}]},
					{"match": [{"path": ["/public/*"]}], "handle": [{"handler": "subroute", "routes": [
						{"handle": [{"handler": "rewrite", "strip_path_prefix": "/public"}, {"handler": "llm_query", "allow_public": true}]}]}]},
					{"match": [{"path": ["/slow/*"]}], "handle": [{"handler": "subroute", "routes": [
						{"handle": [{"handler": "rewrite", "strip_path_prefix": "/slow"}, {"handler": "llm_query", "store": "slow", "timeout": "10ms"}]}]}]},
					{"match": [{"path": ["/busy/*"]}], "handle": [{"handler": "subroute", "routes": [
						{"handle": [{"handler": "rewrite", "strip_path_prefix": "/busy"}, {"handler": "llm_query", "store": "slow", "timeout": "1m"}]}]}]},
					{"match": [{"path": ["/broken/*"]}], "handle": [{"handler": "subroute", "routes": [
						{"handle": [{"handler": "rewrite", "strip_path_prefix": "/broken"}, {"handler": "llm_query", "store": "broken"}]}]}]},
					{"match": [{"path": ["/crowded/*"]}], "handle": [{"handler": "subroute", "routes": [
						{"handle": [{"handler": "rewrite", "strip_path_prefix": "/crowded"}, {"handler": "llm_query", "store": "crowded"}]}]}]},
					{"handle": [{"handler": "llm_query", "timeout": "1m"}, {"handler": "static_response", "status_code": 418}]}
				]
			}}}
		}
	}`, filepath.Join(dir, "log"), filepath.Join(dir, "weir.db"), filepath.Join(dir, "eu.db"),
		filepath.Join(dir, "slow"), filepath.Join(dir, "broken"), filepath.Join(dir, "crowded"), address)
	if err := caddy.Load([]byte(config), true); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { storestest.Stop(t) })
	return &site{t, "http://" + address, dir}
}

// record appends a record to a store, and waits until it can be queried.
func (s *site) record(store string, r *storage.Record, c *storage.Content) uuid.UUID {
	s.t.Helper()
	j := s.journal(store)
	if r.ID == uuid.Nil {
		r.ID = uuid.Must(uuid.NewV7())
	}
	if r.CreatedAt == 0 {
		r.CreatedAt = 1_790_000_000_000
	}
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		s.t.Fatal(err)
	}
	if err := j.Flush(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return r.ID
}

func (s *site) journal(store string) *journal.Journal {
	s.t.Helper()
	for _, open := range stores.InUse() {
		if open.Name() == store {
			return open.Opened()
		}
	}
	s.t.Fatalf("no store %s", store)
	return nil
}

func (s *site) do(method, path, key, body string) (*http.Response, gjson.Result) {
	s.t.Helper()
	response, answer, _ := s.fetch(method, path, key, body)
	return response, answer
}

// fetch is do with the answer's text, too.
func (s *site) fetch(method, path, key, body string) (*http.Response, gjson.Result, string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if response.Header.Get("Content-Type") == "application/json" && !json.Valid(answer) {
		s.t.Fatalf("%s %s answered no JSON: %q", method, path, answer)
	}
	return response, gjson.ParseBytes(answer), string(answer)
}

const bulk, legacy = "/v1/request/query-clickhouse", "/v1/request/query"

func TestRecord(t *testing.T) {
	s := newSite(t)
	id := s.record("default", &storage.Record{
		Org:              "default",
		CreatedAt:        1_790_000_000_123,
		RespondedAt:      1_790_000_001_123,
		Latency:          plugins.KnownDuration(1000 * time.Millisecond),
		TimeToFirstToken: plugins.KnownDuration(200 * time.Millisecond),
		Status:           plugins.Known(200),
		Stream:           true,
		Provider:         "openai",
		Dialect:          plugins.Chat,
		Model:            "gpt-4o-mini",
		RequestModel:     "gpt-4o",
		UserID:           "ada",
		Properties:       map[string]string{"Tier": "gold"},
		Usage:            plugins.Usage{Input: plugins.Known(100), Output: plugins.Known(20), CacheRead: plugins.Known(0)},
		Cost:             plugins.KnownCost(27_000),
		Attempt:          2,
	}, &storage.Content{
		Request:  storage.Body{Type: "application/json", Data: []byte(`{"n": 1.0, "s":"<é>"}`)},
		Response: storage.Body{Type: "text/plain", Data: []byte("plain \"text\"")},
		Inputs:   map[string]string{"city": "Ulm"},
	})

	_, answer := s.do("POST", bulk, "root", `{"filter":"all","includeInputs":true}`)
	if answer.Get("error").Raw != "null" || answer.Get("data.#").Int() != 1 {
		t.Fatalf("answer %s", answer)
	}
	record := answer.Get("data.0")
	for path, want := range map[string]string{
		"request_id":                `"` + id.String() + `"`,
		"request_created_at":        `"2026-09-21T14:13:20.123Z"`,
		"response_created_at":       `"2026-09-21T14:13:21.123Z"`,
		"response_status":           `200`,
		"delay_ms":                  `1000`,
		"time_to_first_token":       `200`,
		"time_to_last_token":        `1000`,
		"end_state":                 `"complete"`,
		"model":                     `"gpt-4o-mini"`,
		"request_model":             `"gpt-4o"`,
		"response_model":            `null`,
		"request_user_id":           `"ada"`,
		"properties.Tier":           `"gold"`,
		"prompt_tokens":             `100`,
		"completion_tokens":         `20`,
		"total_tokens":              `120`,
		"prompt_cache_read_tokens":  `0`,
		"prompt_cache_write_tokens": `null`,
		"cache_savings":             `null`,
		"cost":                      `0.000027`,
		"costUSD":                   `0.000027`,
		"scores":                    `{}`,
		"attempt":                   `2`,
		"attempt_of":                `null`,
		"cache_reference_id":        `null`,
		"organization_id":           `"default"`,
		"request_body":              `{"n": 1.0, "s":"<é>"}`,
		"response_body":             `"plain \"text\""`,
		"inputs.city":               `"Ulm"`,
		"signed_body_url":           `null`,
	} {
		if got := record.Get(path).Raw; got != want {
			t.Errorf("%s = %s, want %s", path, got, want)
		}
	}

	_, one := s.do("GET", "/v1/request/"+id.String(), "root", "")
	if got := one.Get("data.request_id").String(); got != id.String() {
		t.Errorf("GET answered %s", one)
	}
	_, without := s.do("POST", legacy, "root", `{"filter":{}}`)
	if without.Get("data.0.inputs").Exists() {
		t.Error("inputs came unasked")
	}
}

// TestCostDetails holds that a cost is explained by the prices that it was computed
// with, or not at all.
func TestCostDetails(t *testing.T) {
	s := newSite(t)
	prices := catalog.Default()
	usage := plugins.Usage{Input: plugins.Known(1100), CacheRead: plugins.Known(1000), Output: plugins.Known(10)}
	cost := prices.Cost("anthropic", "claude-sonnet-4-6", usage, catalog.Conditions{})
	for name, test := range map[string]struct {
		cost    plugins.Cost
		version string
		want    string
	}{
		"these prices":   {cost, prices.Version(), `["cache_read","input","output"]`},
		"earlier prices": {cost, "2020-01-01", "null"},
		"another cost":   {plugins.KnownCost(7), prices.Version(), "null"},
		"no cost":        {plugins.Cost{}, "", "null"},
	} {
		id := s.record("default", &storage.Record{
			Org: "default", Provider: "anthropic", Model: "alias", RequestModel: "claude-sonnet-4-6", Usage: usage, Cost: test.cost, PriceVersion: test.version,
		}, nil)
		_, answer := s.do("GET", "/v1/request/"+id.String(), "root", "")
		details := answer.Get("data.cost_details")
		if details.IsArray() && details.Get("#.item").Raw != test.want || !details.IsArray() && details.Raw != test.want {
			t.Errorf("%s: %s", name, details.Raw)
		}
	}
}

func TestBinaryBody(t *testing.T) {
	s := newSite(t)
	s.record("default", &storage.Record{Org: "default"}, &storage.Content{
		Response: storage.Body{Type: "audio/mpeg", Data: []byte{0xff, 0xfb, 0x90}},
	})
	_, answer := s.do("POST", bulk, "root", `{"filter":"all"}`)
	if got, want := answer.Get("data.0.response_body").Raw, `{"content_type":"audio/mpeg","base64":"//uQ"}`; got != want {
		t.Errorf("response_body = %s, want %s", got, want)
	}
	if got := answer.Get("data.0.request_body").Raw; got != "null" {
		t.Errorf("request_body = %s, want null", got)
	}
}

// TestIsolation asks for every record with every key, everywhere.
func TestIsolation(t *testing.T) {
	s := newSite(t)
	ids := map[string]string{
		"root":   s.record("default", &storage.Record{Org: "default"}, nil).String(),
		"acme":   s.record("default", &storage.Record{Org: "acme"}, nil).String(),
		"europe": s.record("eu", &storage.Record{Org: "europe"}, nil).String(),
	}
	home := map[string]string{"root": "", "acme": "", "europe": "/eu"}
	for key, prefix := range home {
		_, answer := s.do("POST", prefix+bulk, key, `{"filter":"all"}`)
		if got := answer.Get("data.#.request_id").Raw; got != `["`+ids[key]+`"]` {
			t.Errorf("%s sees %s, want its own record %s", key, got, ids[key])
		}
		for other, id := range ids {
			response, _ := s.do("GET", prefix+"/v1/request/"+id, key, "")
			want := http.StatusNotFound
			if other == key {
				want = http.StatusOK
			}
			if response.StatusCode != want {
				t.Errorf("%s asks for the record of %s: %d, want %d", key, other, response.StatusCode, want)
			}
		}
		// A key opens nothing in a region that is not its own.
		foreign := "/eu"
		if prefix == "/eu" {
			foreign = ""
		}
		if response, _ := s.do("POST", foreign+bulk, key, `{"filter":"all"}`); response.StatusCode != http.StatusForbidden {
			t.Errorf("%s asks in the other region: %d, want 403", key, response.StatusCode)
		}
	}
	_, answer := s.do("POST", "/public"+bulk, "", `{"filter":"all"}`)
	if got := answer.Get("data.#.request_id").Raw; got != `["`+ids["root"]+`"]` {
		t.Errorf("the public sees %s", got)
	}
}

func TestRefusals(t *testing.T) {
	s := newSite(t)
	for name, tc := range map[string]struct {
		method, path, key, body string
		status                  int
		message                 string
	}{
		"no key":                   {"POST", bulk, "", `{"filter":"all"}`, 401, "API key is required"},
		"unknown key":              {"POST", bulk, "nope", `{"filter":"all"}`, 401, "not known"},
		"public, wrong key":        {"POST", "/public" + bulk, "nope", `{"filter":"all"}`, 401, "not known"},
		"scope":                    {"POST", bulk, "writer", `{"filter":"all"}`, 403, `scope "query"`},
		"method":                   {"GET", bulk, "root", "", 405, "takes POST"},
		"method on a record":       {"DELETE", "/v1/request/" + uuid.NewString(), "root", "", 405, "takes GET"},
		"no such record":           {"GET", "/v1/request/" + uuid.NewString(), "root", "", 404, "no such record"},
		"no id":                    {"GET", "/v1/request/abc", "root", "", 404, "no such record"},
		"empty body":               {"POST", bulk, "root", ``, 400, "malformed JSON"},
		"options in the URL":       {"POST", bulk + "?limit=5", "root", `{"filter":"all"}`, 400, "takes its options in the body"},
		"malformed":                {"POST", bulk, "root", `{"filter":`, 400, "malformed JSON"},
		"brackets without end":     {"POST", bulk, "root", strings.Repeat("[", 1<<20), 400, "malformed JSON"},
		"objects without end":      {"POST", bulk, "root", strings.Repeat(`{"a":`, 200_000), 400, "malformed JSON"},
		"trailing garbage":         {"POST", bulk, "root", `{"filter":"all"} x`, 400, "malformed JSON"},
		"array":                    {"POST", bulk, "root", `[]`, 400, "no JSON object"},
		"no filter":                {"POST", bulk, "root", `{}`, 400, "filter: is required"},
		"null filter":              {"POST", bulk, "root", `{"filter":null}`, 400, "filter: is required"},
		"unknown group":            {"POST", bulk, "root", `{"filter":{"reqs":{"model":{"equals":"x"}}}}`, 400, `filter: unknown group "reqs"`},
		"unknown field":            {"POST", bulk, "root", `{"filter":{"request_response_rmt":{"mdoel":{"equals":"x"}}}}`, 400, `filter.request_response_rmt: unknown field "mdoel"`},
		"unknown operator":         {"POST", bulk, "root", `{"filter":{"left":{"request_response_rmt":{"cost":{"like":1}}},"operator":"and","right":"all"}}`, 400, "filter.left.request_response_rmt.cost"},
		"wrong type":               {"POST", bulk, "root", `{"filter":{"request_response_rmt":{"cost":{"gt":"1"}}}}`, 400, "filter.request_response_rmt.cost.gt"},
		"malformed, another group": {"POST", bulk, "root", `{"filter":{"request":{"model":{"gt":"1"}}}}`, 400, "filter.request.model"},
		"limit":                    {"POST", bulk, "root", `{"filter":"all","limit":1001}`, 400, "limit: a whole number from 0 to 1000"},
		"negative limit":           {"POST", bulk, "root", `{"filter":"all","limit":-1}`, 400, "limit:"},
		"fractional offset":        {"POST", bulk, "root", `{"filter":"all","offset":0.5}`, 400, "offset:"},
		"text limit":               {"POST", bulk, "root", `{"filter":"all","limit":"10"}`, 400, "limit:"},
		"isCached":                 {"POST", bulk, "root", `{"filter":"all","isCached":1}`, 400, "isCached: a boolean"},
		"sort key":                 {"POST", bulk, "root", `{"filter":"all","sort":{"price":"asc"}}`, 400, `sort: unknown key "price"`},
		"sort direction":           {"POST", bulk, "root", `{"filter":"all","sort":{"cost":"up"}}`, 400, "sort.cost"},
		"too long":                 {"POST", bulk, "root", `{"filter":"all","x":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "1048576 bytes"},
		"too long an annotation":   {"POST", "/v1/session/s/tag", "root", `{"tag":"` + strings.Repeat("x", 256<<10) + `"}`, 413, "262144 bytes"},
		"unknown body field":       {"POST", bulk, "root", `{"filter":"all","groupBy":"model"}`, 400, `unknown field "groupBy" (known are filter,`},
		"misspelt filter":          {"POST", bulk, "root", `{"filterr":"all"}`, 400, `unknown field "filterr" (did you mean "filter"?)`},
		"misspelt sort":            {"POST", bulk, "root", `{"filter":"all","srot":{}}`, 400, `unknown field "srot" (did you mean "sort"?)`},
		"letter case":              {"POST", bulk, "root", `{"filter":"all","Limit":1}`, 400, `unknown field "Limit" (did you mean "limit"?)`},
		"another endpoint's times": {"POST", "/v1/session/query", "root", `{"timeFilter":{"startTimeUnixSeconds":1}}`, 400, `timeFilter: unknown field "startTimeUnixSeconds" (did you mean "startTimeUnixMs"?)`},
		"another endpoint's zone":  {"POST", "/v1/session/query", "root", `{"timeZoneDifference":0}`, 400, `unknown field "timeZoneDifference" (did you mean "timezoneDifference"?)`},
		"another endpoint's group": {"POST", "/v1/session/query", "root", `{"filter":{"users_view":{"user_cost":{"gte":0}}}}`, 400, `filter: leaves of users_view are not taken here, only those of [sessions_request_response_rmt request_response_rmt]`},
		"a legacy group":           {"POST", "/v1/dashboard/scores/query", "root", `{"userFilter":{"request":{"model":{"equals":"m"}}}}`, 400, `userFilter: leaves of request are not taken here, only those of [request_response_rmt]`},
		"duplicate key":            {"POST", bulk, "root", `{"filter":"all","limit":1,"limit":2}`, 400, `duplicate key "limit"`},
		"duplicate deep key":       {"POST", bulk, "root", `{"filter":{"left":"all","operator":"or","right":{"request_response_rmt":{"cost":{"gte":1,"gte":2}}}}}`, 400, `filter.right.request_response_rmt.cost: duplicate key "gte"`},
		"duplicate escaped key":    {"POST", bulk, "root", `{"filter":"all","\u0066ilter":{}}`, 400, `duplicate key "filter"`},
		"no UTF-8":                 {"POST", bulk, "root", "{\"filter\":\"all\",\"x\":\"\xff\"}", 400, `UTF-8`},
	} {
		t.Run(name, func(t *testing.T) {
			response, answer := s.do(tc.method, tc.path, tc.key, tc.body)
			if response.StatusCode != tc.status {
				t.Errorf("status %d, want %d", response.StatusCode, tc.status)
			}
			if got := answer.Get("error").String(); !strings.Contains(got, tc.message) || answer.Get("data").Raw != "null" {
				t.Errorf("answer %.300s, want the error to say %q", answer.Raw, tc.message)
			}
			if tc.status == 405 && response.Header.Get("Allow") == "" {
				t.Error("405 without Allow")
			}
		})
	}
}

// TestForeignGroups holds that a leaf of a group that a request query does not
// apply finds nothing, with a warning.
func TestForeignGroups(t *testing.T) {
	s := newSite(t)
	s.record("default", &storage.Record{Org: "default", RequestModel: "m", Properties: map[string]string{"p": "v"}}, nil)
	for name, tc := range map[string]struct {
		path, filter string
		found        bool
	}{
		"wrapped property":   {bulk, `{"request_response_rmt":{"properties":{"p":{"equals":"v"}}}}`, true},
		"property, bulk":     {bulk, `{"properties":{"p":{"equals":"v"}}}`, false},
		"property, legacy":   {legacy, `{"properties":{"p":{"equals":"v"}}}`, true},
		"request, bulk":      {bulk, `{"request":{"model":{"equals":"m"}}}`, false},
		"request, legacy":    {legacy, `{"request":{"model":{"equals":"m"}}}`, true},
		"under an or":        {bulk, `{"left":"all","operator":"or","right":{"request":{"model":{"equals":"m"}}}}`, false},
		"users_view, legacy": {legacy, `{"users_view":{"user_cost":{"gte":0}}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			response, answer := s.do("POST", tc.path, "root", `{"filter":`+tc.filter+`}`)
			if found := answer.Get("data.#").Int() == 1; response.StatusCode != 200 || found != tc.found {
				t.Errorf("%d %s", response.StatusCode, answer.Raw)
			}
			if warned := response.Header.Get("Service-Warnings") != ""; warned == tc.found {
				t.Errorf("Service-Warnings: %q", response.Header.Get("Service-Warnings"))
			}
		})
	}
}

func TestOtherPathsPassOn(t *testing.T) {
	s := newSite(t)
	for _, path := range []string{"/", "/v1/models", "/v1/request", "/v1/request/query/more"} {
		if response, _ := s.do("GET", path, "", ""); response.StatusCode != http.StatusTeapot {
			t.Errorf("%s: %d", path, response.StatusCode)
		}
	}
}

// TestClosedSite holds that nobody serves records to everybody by accident.
func TestClosedSite(t *testing.T) {
	config := fmt.Sprintf(`{
		"admin": {"disabled": true, "config": {"persist": false}},
		"logging": {"logs": {"default": {"level": "ERROR"}}},
		"apps": {
			"llm": {"stores": {"default": {"storage": {"backend": "sqlite", "path": %q}}}},
			"http": {"servers": {"api": {"listen": ["127.0.0.1:0"], "routes": [{"handle": [{"handler": "llm_query"}]}]}}}
		}
	}`, filepath.Join(t.TempDir(), "weir.db"))
	var parsed caddy.Config
	if err := json.Unmarshal([]byte(config), &parsed); err != nil {
		t.Fatal(err)
	}
	if err := caddy.Validate(&parsed); err == nil || !strings.Contains(err.Error(), "allow_public") {
		t.Errorf("error %v, want one that names allow_public", err)
	}
}
