//go:build !race

package llmquery_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	_ "github.com/caddyserver/caddy/v2/modules/logging"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	_ "github.com/weirhq/weir/modules/llmquery"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	_ "github.com/weirhq/weir/storage/sqlite"
)

func TestAnalytics(t *testing.T) {
	s := newSite(t)
	const midnight = 1_790_035_200_000 // 2026-09-22
	for i, user := range []string{"ada", "ada", "bo"} {
		s.record("default", &storage.Record{
			Org: "default", UserID: user, SessionID: "s-" + user, SessionName: "chat",
			CreatedAt: midnight + storage.Timestamp(i)*3_600_000, RespondedAt: midnight + storage.Timestamp(i)*3_600_000 + 2000,
			Latency: plugins.KnownDuration(2000 * time.Millisecond), Status: plugins.Known(200), Model: "m",
			Usage: plugins.Usage{Input: plugins.Known(10), Output: plugins.Known(5)},
			Cost:  plugins.KnownCost(plugins.Nanodollars(3-i) * 1_000_000),
		}, nil)
	}
	for name, tc := range map[string]struct {
		path, body string
		want       map[string]string
	}{
		"users": {"/v1/user/metrics/query", `{"filter":"all","sort":{"cost":"desc"}}`, map[string]string{
			"data.hasUsers": "true", "data.count": "2", "data.users.#.user_id": `["ada","bo"]`,
			"data.users.0.cost": "0.005", "data.users.0.total_requests": "2", "data.users.1.total_prompt_tokens": "10",
		}},
		"users, mixed groups": {"/v1/user/metrics/query", `{"filter":{"left":{"users_view":{"user_total_requests":{"equals":1}}},"operator":"and","right":{"request_response_rmt":{"model":{"equals":"m"}}}}}`, map[string]string{
			"data.count": "1", "data.users.#.id": `["bo"]`,
		}},
		"users, window": {"/v1/user/metrics/query", `{"timeFilter":{"startTimeUnixSeconds":1790042400,"endTimeUnixSeconds":1790042400}}`, map[string]string{
			"data.users.#.user_id": `["bo"]`,
		}},
		"overview": {"/v1/user/metrics-overview/query", `{"filter":"all","pSize":"p50","useInterquartile":false}`, map[string]string{
			"error": "null", "data.request_count.0.range_start": `"2026-09-22T00:00:00.000Z"`,
		}},
		"sessions": {"/v1/session/query", `{"search":"S-A","limit":5}`, map[string]string{
			"data.#.session_id": `["s-ada"]`, "data.0.total_cost": "0.005", "data.0.avg_latency": "2000",
		}},
		"sessions by cost": {"/v1/session/query", `{"sort":{"total_cost":"asc"}}`, map[string]string{
			"data.#.session_id": `["s-bo","s-ada"]`,
		}},
		"sessions without a name": {"/v1/session/query", `{"nameEquals":""}`, map[string]string{"data": "[]"}},
		"session metrics": {"/v1/session/metrics/query", `{"nameContains":"CHA","pSize":"p99.9"}`, map[string]string{
			"data.average.session_duration.0.average": "1802",
		}},
		"scores": {"/v1/dashboard/scores/query", `{"timeFilter":{"start":"2026-09-01","end":"2026-10-01"},"userFilter":"all","dbIncrement":"week","timeZoneDifference":-330}`, map[string]string{
			"data": "[]",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			response, answer := s.do("POST", tc.path, "root", tc.body)
			if response.StatusCode != 200 {
				t.Fatalf("%d %s", response.StatusCode, answer.Raw)
			}
			for field, want := range tc.want {
				if got := answer.Get(field).Raw; got != want {
					t.Errorf("%s = %s, want %s", field, got, want)
				}
			}
		})
	}
	for body, path := range map[string]string{
		`{"pSize":""}`:                                         "/v1/user/metrics-overview/query",
		`{"dbIncrement":""}`:                                   "/v1/dashboard/scores/query",
		`{"timeFilter":{"start":""}}`:                          "/v1/dashboard/scores/query",
		`{"timeFilter":{"end":""}}`:                            "/v1/dashboard/scores/query",
		`{"sort":{"cost":"asc"}}`:                              "/v1/session/query",
		`{"pSize":"p42"}`:                                      "/v1/user/metrics-overview/query",
		`{"by":"path"}`:                                        "/v1/session/tree/query",
		`{"sessionId":"s","by":"agent"}`:                       "/v1/session/tree/query",
		`{"timezoneDifference":1441}`:                          "/v1/session/metrics/query",
		`{"timezoneDifference":0.5}`:                           "/v1/session/query",
		`{"timeFilter":7}`:                                     "/v1/session/query",
		`{"timeFilter":{"startTimeUnixMs":"now"}}`:             "/v1/session/query",
		`{"timeFilter":{"startTimeUnixSeconds":1e300}}`:        "/v1/user/metrics/query",
		`{"timeFilter":{"start":"yesterday"}}`:                 "/v1/dashboard/scores/query",
		`{"dbIncrement":"fortnight"}`:                          "/v1/dashboard/scores/query",
		`{"sort":{"age":"asc"}}`:                               "/v1/user/metrics/query",
		`{"limit":1001}`:                                       "/v1/user/metrics/query",
		`{"search":1}`:                                         "/v1/session/query",
		`{"useInterquartile":"yes"}`:                           "/v1/session/metrics/query",
		`{"filter":{"users_view":{"user_cost":{"like":"x"}}}}`: "/v1/user/metrics/query",
	} {
		if response, answer := s.do("POST", path, "root", body); response.StatusCode != 400 || answer.Get("error").String() == "" {
			t.Errorf("%s %s: %d %s", path, body, response.StatusCode, answer.Raw)
		}
	}
}

// A filter that would keep a processor busy for long is refused at once, and says which
// bound it is beyond.
func TestFilterWork(t *testing.T) {
	s := newSite(t)
	s.record("default", &storage.Record{Org: "default"}, nil)
	any := func(leaf string, n int) string {
		return strings.Repeat(`{"operator":"or","left":`+leaf+`,"right":`, n-1) + leaf + strings.Repeat("}", n-1)
	}
	body := `{"request_response_rmt":{"response_body":{"contains":"x"}}}`
	property := `{"request_response_rmt":{"properties":{"a":{"equals":"b"}}}}`
	model := `{"request_response_rmt":{"model":{"equals":"b"}}}`
	long := `{"request_response_rmt":{"model":{"contains":"` + strings.Repeat("x", 900<<10) + `"}}}`
	for filter, want := range map[string]int{
		any(body, 20): 200, any(body, 50): 400, any(property, 400): 200, any(property, 1000): 400,
		any(model, 9000): 200, long: 400,
	} {
		for _, path := range []string{bulk, "/v1/metrics/query"} {
			response, answer := s.do("POST", path, "root", `{"filter":`+filter+`}`)
			if response.StatusCode != want || want == 400 && !strings.Contains(answer.Get("error").Str, "filter_work") {
				t.Errorf("%s with %.90s… of %d bytes: %d %.200s, want %d", path, filter, len(filter), response.StatusCode, answer.Get("error").Str, want)
			}
		}
	}
}

// A filter is as deep as a body of 1 MiB has room for, at every endpoint.
func TestFiltersOfAnyDepth(t *testing.T) {
	s := newSite(t)
	s.record("default", &storage.Record{Org: "default", UserID: "ada", SessionID: "s", Model: "m"}, nil)
	const leaf = `{"request_response_rmt":{"model":{"equals":"m"}}}`
	left, right := `{"left":{"left":`+leaf+`,"operator":"or","right":`, `},"operator":"and","right":`+leaf+`}`
	depth := (1<<20 - 100) / len(left+right)
	deep := strings.Repeat(left, depth) + leaf + strings.Repeat(right, depth)
	for path, field := range map[string]string{
		bulk: "filter", legacy: "filter", "/v1/user/metrics/query": "filter", "/v1/user/metrics-overview/query": "filter",
		"/v1/session/query": "filter", "/v1/session/metrics/query": "filter", "/v1/dashboard/scores/query": "userFilter",
	} {
		response, answer := s.do("POST", path, "root", `{"`+field+`":`+deep+`}`)
		if response.StatusCode != http.StatusOK || path == bulk && answer.Get("data.#").Int() != 1 {
			t.Errorf("%s: %d %.300s", path, response.StatusCode, answer.Raw)
		}
	}
}

// TestDescribesBodies holds that endpoints read every field that is described,
// within the bounds and choices that are, and with the default that is.
func TestDescribesBodies(t *testing.T) {
	s := newSite(t)
	s.recordVariety()
	d := s.describe()
	for pointer, operation := range d.operations() {
		method, path, _ := strings.Cut(operation, " ")
		if method == http.MethodGet {
			continue // has no body, and may answer for ever
		}
		body, _ := d.object(pointer + jsonBody + "/schema")
		ask := func(field, value string) (status int, answer gjson.Result) {
			members := map[string]json.RawMessage{}
			required, _ := d.at(body + "/required").([]any)
			for name, value := range map[string]string{"filter": `"all"`, "sessionId": `"v0"`, "policy": `["openai/gpt-5-mini"]`} {
				if slices.Contains(required, any(name)) {
					members[name] = json.RawMessage(value)
				}
			}
			if field != "" {
				members[field] = json.RawMessage(value)
			}
			full := string(must(json.Marshal(members)))
			response, answer := s.do(method, strings.ReplaceAll(path, "{id}", uuid.NewString()), "root", full)
			return response.StatusCode, answer
		}
		reads := func(field, value, place string) bool {
			status, answer := ask(field, value)
			return status == http.StatusBadRequest && strings.HasPrefix(answer.Get("error").String(), place+":")
		}
		fields := mapOf(d.at(body + "/properties"))
		for name := range fields {
			property, schema := d.object(body + "/properties/" + name)
			if !reads(name, `[]`, name) {
				t.Errorf("%s does not read %s", operation, name)
			}
			for inner := range mapOf(schema["properties"]) {
				if name != "sort" && !reads(name, fmt.Sprintf(`{%q:[]}`, inner), name+"."+inner) {
					t.Errorf("%s does not read %s.%s", operation, name, inner)
				}
			}
			for bound, step := range map[string]float64{"minimum": -1, "maximum": 1} {
				n, ok := schema[bound].(float64)
				if !ok {
					continue
				}
				if status, answer := ask(name, fmt.Sprint(n)); status != http.StatusOK {
					t.Errorf("%s: %s %v: %s", operation, name, n, answer.Raw)
				}
				if !reads(name, fmt.Sprint(n+step), name) {
					t.Errorf("%s takes the %s %v", operation, name, n+step)
				}
			}
			if absent, ok := schema["default"]; ok {
				text, _ := json.Marshal(absent)
				_, with := ask(name, string(text))
				if _, without := ask("", ""); with.Raw != without.Raw {
					t.Errorf("%s: without %s it is not %s", operation, name, text)
				}
			}
			switch {
			case schema["enum"] != nil:
				_, answer := ask(name, `"no such choice"`)
				d.sameNames(t, property+"/enum", between(answer.Get("error").String(), "one of ", " is expected"))
			case name == "sort":
				_, answer := ask(name, `{"no such choice":"asc"}`)
				d.sameNames(t, property+"/properties", between(answer.Get("error").String(), "known are ", ")"))
			}
		}
		for _, name := range manualNames(t) {
			if _, described := fields[name]; !described && reads(name, `[]`, name) {
				t.Errorf("%s reads %s, which is not described", operation, name)
			}
		}
	}
}

// TestDescribesFilters holds that each filter schema takes what the endpoint
// applies: every group, field, operator and type of value, and no other.
func TestDescribesFilters(t *testing.T) {
	s := newSite(t)
	d := s.describe()
	for path, field := range map[string]string{
		bulk: "filter", legacy: "filter", "/v1/user/metrics/query": "filter", "/v1/user/metrics-overview/query": "filter",
		"/v1/session/query": "filter", "/v1/session/metrics/query": "filter", "/v1/dashboard/scores/query": "userFilter",
	} {
		t.Run(path, func(t *testing.T) {
			schema, _ := d.object("#/paths/" + strings.ReplaceAll(path, "/", "~1") + "/post" + jsonBody + "/schema")
			schema, _ = d.object(schema + "/properties/" + field)
			applied := make(map[storage.Group]bool)
			for _, f := range storage.Fields() {
				leaf := leafOf(f, f.Kind.Operators()[0], sampleOf[f.Kind])
				if _, asked := applied[f.Group]; !asked {
					response, _ := s.do("POST", path, "root", fmt.Sprintf(`{%q:%s}`, field, leaf))
					applied[f.Group] = response.StatusCode == http.StatusOK && response.Header.Get("Service-Warnings") == ""
				}
				for op := storage.Equals; op <= storage.IsNull; op++ {
					for _, value := range []string{`"2026-11-20"`, `1`, `true`, `null`} {
						leaf := leafOf(f, op, value)
						_, err := storage.ParseFilter([]byte(leaf), f.Group)
						d.expect(t, schema, leaf, err == nil && applied[f.Group])
					}
				}
			}
			leaf := `{"request_response_rmt":{"cost":{"gte":1}}}`
			for filter, valid := range map[string]bool{
				`"all"`: true, `{}`: true, `"none"`: false, `[]`: false,
				`{"left":` + leaf + `,"operator":"or","right":"all"}`:                                           true,
				`{"left":{},"operator":"and","right":{"left":"all","operator":"and","right":` + leaf + `}}`:     true,
				`{"left":` + leaf + `,"operator":"xor","right":"all"}`:                                          false,
				`{"left":` + leaf + `,"operator":"or"}`:                                                         false,
				`{"request_response_rmt":{"cost":{"gte":1,"lte":2}}}`:                                           false,
				`{"request_response_rmt":{"cost":{"gte":1},"status":{"equals":200}}}`:                           false,
				`{"request_response_rmt":{"cost":{"gte":1}},"users_view":{"user_cost":{"gte":1}}}`:              false,
				`{"request_response_rmt":{"properties":{"a":{"equals":"1"},"b":{"equals":"1"}}}}`:               false,
				`{"request_response_rmt":{"price":{"gte":1}}}`:                                                  false,
				`{"left":"all","operator":"or","right":"all","request_response_rmt":{"cost":{"gte":1}}}`:        false,
				`{"left":"all","operator":"and","right":{"request_response_rmt":{"cost":{"gte":"1"}}}}`:         false,
				`{"left":"all","operator":"and","right":{"request_response_rmt":{"latency":{"contains":"1"}}}}`: false,
			} {
				if _, err := storage.ParseFilter([]byte(filter)); (err == nil) != valid {
					t.Fatalf("%s: %v", filter, err)
				}
				d.expect(t, schema, filter, valid)
			}
			groups, _ := d.object(schema + "/oneOf/1")
			for group := range mapOf(d.at(groups + "/properties")) {
				pointer, described := d.object(groups + "/properties/" + group)
				for name := range mapOf(described["properties"]) {
					if storage.LookupField(storage.Group(group), name) == nil {
						t.Errorf("%s: there is no field %s.%s", pointer, group, name)
					}
				}
			}
		})
	}
}

// TestUnknownFields holds that no body is answered that has one field which its
// endpoint does not take there: of another name, of another spelling, or out of
// its place.
func TestUnknownFields(t *testing.T) {
	s := newSite(t)
	d := s.describe()
	random := rand.New(rand.NewPCG(1, 2))
	type target struct {
		method, path, schema string
	}
	var targets []target
	var names []string // of all fields anywhere
	for pointer, operation := range d.operations() {
		schema, object := d.object(pointer + jsonBody + "/schema")
		if object == nil {
			continue
		}
		method, path, _ := strings.Cut(operation, " ")
		id := s.record("default", &storage.Record{Org: "default", SessionID: "s1", Properties: map[string]string{"Service-Session-Id": "s1", "text": "text"}}, nil).String() // as bodies expect it
		if strings.Contains(path, "/session/") {
			id = "s1"
		}
		targets = append(targets, target{method, strings.ReplaceAll(path, "{id}", id), schema})
		for name := range mapOf(object["properties"]) {
			names = append(names, name)
			_, property := d.object(schema + "/properties/" + name)
			names = slices.AppendSeq(names, maps.Keys(mapOf(property["properties"])))
		}
	}
	slices.SortFunc(targets, func(a, b target) int { return strings.Compare(a.path, b.path) })
	slices.Sort(names)
	names = slices.Compact(names)

	s.record("default", &storage.Record{Org: "default", SessionID: "text"}, nil) // as bodies name it
	for range *unknownFields {
		target := targets[random.IntN(len(targets))]
		body := d.bodyOf(random, target.schema)
		if response, answer := s.do(target.method, target.path, "root", encode(body)); response.StatusCode >= 300 {
			t.Fatalf("%s: the body %s is answered with %d %s", target.path, encode(body), response.StatusCode, answer)
		}
		// The objects whose fields are described: the body, and those within.
		places := []string{""}
		for name := range body {
			if _, schema := d.object(target.schema + "/properties/" + name); schema["additionalProperties"] == false && schema["properties"] != nil {
				places = append(places, name)
			}
		}
		slices.Sort(places)
		place := places[random.IntN(len(places))]
		at, schema := body, target.schema
		if place != "" {
			at = mapOf(body[place])
			schema, _ = d.object(target.schema + "/properties/" + place)
		}
		known := mapOf(d.at(schema + "/properties"))
		name := strange(random, names)
		for known[name] != nil {
			name = strange(random, names)
		}
		at[name] = []any{1, "x", true, nil, "asc", map[string]any{}, []any{}}[random.IntN(7)]
		response, answer := s.do(target.method, target.path, "root", encode(body))
		if message := answer.Get("error").String(); response.StatusCode != http.StatusBadRequest || !strings.Contains(message, fmt.Sprintf("%q", name)) {
			t.Errorf("%s: the body %s is answered with %d %s", target.path, encode(body), response.StatusCode, answer)
		}
	}
}
