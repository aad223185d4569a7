//go:build !race

package llmquery_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"
	_ "github.com/caddyserver/caddy/v2/modules/logging"
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
