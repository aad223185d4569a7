package llmquery_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// Pages that follow one another by cursor have each row once, also when rows are
// written before the place they have come to.
func TestPagesBehindCursor(t *testing.T) {
	s := newSite(t)
	record := func(i int) {
		s.record("default", &storage.Record{
			Org: "default", CreatedAt: storage.Timestamp(1_790_000_000_000 + i/3), UserID: fmt.Sprintf("user%02d", i), SessionID: fmt.Sprintf("s%02d", i),
			Properties: map[string]string{"Service-Session-Id": fmt.Sprintf("s%02d", i)},
		}, nil)
	}
	for i := range 20 {
		record(i)
	}
	for _, test := range []struct{ path, body, rows string }{
		{bulk, `"filter":"all","includeContent":false`, "data.#.request_id"},
		{legacy, `"filter":"all","sort":{"user_id":"desc","cost":"asc"}`, "data.#.request_id"},
		{bulk, `"filter":"all","sort":{"request_prompt":"desc"}`, "data.#.request_id"},
		{"/v1/user/metrics/query", `"sort":{"total_requests":"desc"}`, "data.users.#.id"},
		{"/v1/session/query", `"sort":{"created_at":"desc"}`, "data.#.session_id"},
	} {
		seen := make(map[string]int)
		after, pages := "", 0
		for ; pages < 20; pages++ {
			response, answer := s.do("POST", test.path, "root", "{"+test.body+after+`,"limit":7}`)
			if response.StatusCode != http.StatusOK {
				t.Fatalf("%s %s: %d %s", test.path, test.body, response.StatusCode, answer)
			}
			for _, id := range answer.Get(test.rows).Array() {
				seen[id.Str]++
			}
			if !answer.Get("next").Exists() {
				t.Fatalf("%s: %s has no next", test.path, answer)
			}
			if answer.Get("next").Type.String() == "Null" {
				break
			}
			after = fmt.Sprintf(`,"after":%q`, answer.Get("next").Str)
		}
		if len(seen) != 20 || pages > 3 {
			t.Errorf("%s {%s}: %d rows on %d pages", test.path, test.body, len(seen), pages+1)
		}
		for id, times := range seen {
			if times != 1 {
				t.Errorf("%s {%s}: %s came %d times", test.path, test.body, id, times)
			}
		}
	}
	_, first := s.do("POST", bulk, "root", `{"filter":"all","limit":7}`)
	record(99) // newer than all
	_, second := s.do("POST", bulk, "root", fmt.Sprintf(`{"filter":"all","limit":7,"after":%q}`, first.Get("next").Str))
	_, shifted := s.do("POST", bulk, "root", `{"filter":"all","limit":7,"offset":8}`)
	if got, want := second.Get("data.0.request_id").Str, shifted.Get("data.0.request_id").Str; got != want {
		t.Errorf("the second page begins with %s, want %s", got, want)
	}
}

// The last page has no next, also if it is exactly full.
func TestLastPageHasNoNext(t *testing.T) {
	s := newSite(t)
	const rows, limit = 12, 4
	for i := range rows {
		s.record("default", &storage.Record{
			Org: "default", CreatedAt: storage.Timestamp(1_790_000_000_000 + i), UserID: fmt.Sprintf("user%02d", i), SessionID: fmt.Sprintf("s%02d", i),
			Properties: map[string]string{"Service-Session-Id": fmt.Sprintf("s%02d", i)},
		}, nil)
	}
	for _, test := range []struct{ path, body, rows string }{
		{bulk, `"filter":"all"`, "data.#.request_id"},
		{bulk, `"filter":"all","sort":{"request_prompt":"desc"}`, "data.#.request_id"},
		{legacy, `"filter":"all","sort":{"user_id":"desc"}`, "data.#.request_id"},
		{"/v1/user/metrics/query", `"sort":{"total_requests":"desc"}`, "data.users.#.id"},
		{"/v1/session/query", `"sort":{"created_at":"desc"}`, "data.#.session_id"},
		{"/v1/metrics/query", `"groupBy":"user_id"`, "data.groups.#.key"},
		{"/v1/request/search", `"filter":"all"`, "data.#.request_id"},
	} {
		seen, after := 0, ""
		for page := 1; page <= rows/limit; page++ {
			response, answer := s.do("POST", test.path, "root", fmt.Sprintf(`{%s%s,"limit":%d}`, test.body, after, limit))
			if response.StatusCode != http.StatusOK {
				t.Fatalf("%s %s: %d %s", test.path, test.body, response.StatusCode, answer)
			}
			for _, key := range answer.Get(test.rows).Array() {
				if key.Type != gjson.Null { // the group of all others
					seen++
				}
			}
			next := answer.Get("next")
			if last := page == rows/limit; next.Exists() == false || (next.Type == gjson.Null) != last {
				t.Errorf("%s {%s}: page %d of %d has the next %q", test.path, test.body, page, rows/limit, next.Raw)
				break
			}
			after = fmt.Sprintf(`,"after":%q`, next.Str)
		}
		if seen != rows {
			t.Errorf("%s {%s}: %d rows", test.path, test.body, seen)
		}
	}
}

// Bodies that begin alike have an order all the same, after cursors too, which do
// not hold them.
func TestLongTextsBehindCursor(t *testing.T) {
	s := newSite(t)
	want := make([]string, 20)
	for i := range want {
		place := i * 7 % len(want)
		body := fmt.Sprintf(`{"messages":[{"role":"user","content":"%s%02d"}]}`, strings.Repeat("x", 5000), place)
		r := &storage.Record{Org: "default", Dialect: plugins.Chat}
		want[place] = s.record("default", r, &storage.Content{Request: storage.Body{Data: []byte(body)}}).String()
	}
	var got []string
	for after := ""; len(got) < len(want); {
		_, answer := s.do("POST", bulk, "root", `{"filter":"all","includeContent":false,"sort":{"request_prompt":"asc"},"limit":3`+after+`}`)
		for _, id := range answer.Get("data.#.request_id").Array() {
			got = append(got, id.Str)
		}
		next := answer.Get("next").Str
		if len(next) > 200 || len(got)%3 > 0 {
			break
		}
		after = fmt.Sprintf(`,"after":%q`, next)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the order is %v, want %v", got, want)
	}
}

func TestCursorsOfOtherQueriesAreRefused(t *testing.T) {
	s := newSite(t)
	for range 2 {
		s.record("default", &storage.Record{Org: "default", UserID: "ada"}, nil)
	}
	_, answer := s.do("POST", bulk, "root", `{"filter":"all","limit":1}`)
	for _, body := range []string{
		`{"filter":"all","after":"x"}`,
		`{"filter":"all","after":7}`,
		fmt.Sprintf(`{"filter":"all","sort":{"cost":"asc"},"after":%q}`, answer.Get("next").Str),
		fmt.Sprintf(`{"filter":"all","sort":{"random":true},"after":%q}`, answer.Get("next").Str),
	} {
		response, refused := s.do("POST", bulk, "root", body)
		if response.StatusCode != http.StatusBadRequest || !strings.HasPrefix(refused.Get("error").Str, "after: ") {
			t.Errorf("%s: %d %s", body, response.StatusCode, refused)
		}
	}
}

// A list without content has no bodies.
func TestListWithoutContent(t *testing.T) {
	s := newSite(t)
	s.record("default", &storage.Record{Org: "default"}, &storage.Content{Request: storage.Body{Type: "text/plain", Data: []byte("hello")}})
	_, answer := s.do("POST", bulk, "root", `{"filter":"all","includeContent":false}`)
	if row := answer.Get("data.0"); !row.Get("request_omitted").Exists() || row.Get("request_body").Exists() || row.Get("response_body").Exists() {
		t.Errorf("without content: %s", row)
	}
	_, answer = s.do("POST", bulk, "root", `{"filter":"all","includeContent":true}`)
	if got := answer.Get("data.0.request_body").Str; got != "hello" {
		t.Errorf("with content, the request is %q", got)
	}
}

// The model that costs most comes first however few its requests are, and pages of
// groups go on from there.
func TestGroupsByCost(t *testing.T) {
	s := newSite(t)
	for model, requests := range map[string]int{"cheap": 3, "dear": 1, "free": 2} {
		for range requests {
			cost := map[string]plugins.Cost{"cheap": plugins.KnownCost(1), "dear": plugins.KnownCost(3e9)}[model]
			s.record("default", &storage.Record{Org: "default", Model: model, Cost: cost}, nil)
		}
	}
	const byCost = `{"groupBy":"model","sort":{"cost":"desc"},"limit":1`
	var keys []string
	body := byCost + "}"
	for {
		_, answer := s.do("POST", "/v1/metrics/query", "root", body)
		if requests := answer.Get("data.groups.#.totals.requests").Raw; answer.Get("data.totals.requests").Int() != 6 {
			t.Fatalf("%s: %s", body, requests)
		}
		for _, key := range answer.Get("data.groups.#.key").Array() {
			if key.Type != gjson.Null {
				keys = append(keys, key.Str)
			}
		}
		if answer.Get("next").Type == gjson.Null {
			break
		}
		body = byCost + `,"after":` + answer.Get("next").Raw + `}`
	}
	if want := []string{"dear", "cheap", "free"}; !slices.Equal(keys, want) {
		t.Errorf("by cost: %q, want %q", keys, want)
	}
	for _, body := range []string{
		`{"groupBy":"model","sort":{"costs":"desc"}}`,
		`{"groupBy":"model","sort":{"latency":"desc"}}`,
		`{"groupBy":"model","sort":{"latency":{"p90":"desc"}}}`,
		`{"groupBy":"model","sort":{"cost":"desc","errors":"desc"}}`,
		`{"groupBy":"model","after":"x"}`,
	} {
		if response, answer := s.do("POST", "/v1/metrics/query", "root", body); response.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", body, response.StatusCode, answer)
		}
	}
}
