package llmquery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmquery"
	"github.com/weirhq/weir/storage"
)

// searching has records whose bodies count on, the older ones with larger numbers,
// several at a time.
func searching(t *testing.T, records int) (s *site, ids []string) {
	s = newSite(t)
	j := s.journal("default")
	for i := range records {
		r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "default", CreatedAt: storage.Timestamp(1_790_000_000_000 - i/3), Model: fmt.Sprint("m", i%2)}
		if err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: storage.Body{Type: "text/plain", Data: fmt.Append(nil, "body ", i, ".")}})); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID.String())
	}
	s.record("default", &storage.Record{Org: "acme", CreatedAt: 1_780_000_000_000}, &storage.Content{Request: storage.Body{Type: "text/plain", Data: []byte("body 1100.")}})
	return s, ids
}

// A search finds what a query finds, in its order, each once, and its lines tell how
// far it is.
func TestSearch(t *testing.T) {
	s, ids := searching(t, 1200)
	search := func(fields string) (found []string, lines []gjson.Result) {
		t.Helper()
		response, answer := s.do("POST", "/v1/request/search", "root", `{`+fields+`}`)
		if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != "application/x-ndjson" {
			t.Fatalf("%d %s %.300s", response.StatusCode, got, answer.Raw)
		}
		back := ""
		for line := range strings.Lines(answer.Raw) {
			l := gjson.Parse(line)
			lines = append(lines, l)
			until := l.Get("searched_back_to").Str // once a line: a line has up to a thousand requests
			for _, r := range l.Get("data").Array() {
				found = append(found, r.Get("request_id").Str)
				if at := r.Get("request_created_at").Str; at < until || back != "" && at >= back {
					t.Errorf("a request of %s is found between %s and %s", at, back, until)
				}
			}
			back = until
		}
		return found, lines
	}
	contains := func(text string) string {
		return `"filter":{"request_response_rmt":{"request_body":{"contains":"` + text + `"}}}`
	}
	query := func(fields string) (found []string) {
		_, answer := s.do("POST", bulk, "root", `{`+fields+`,"limit":1000}`)
		for _, id := range answer.Get("data.#.request_id").Array() {
			found = append(found, id.Str)
		}
		return found
	}
	found, lines := search(contains("body 1100."))
	last := lines[len(lines)-1]
	if !slices.Equal(found, ids[1100:1101]) || len(lines) < 2 || last.Get("next").Raw != "null" || last.Get("searched_back_to").Raw != "null" || lines[0].Get("next").Raw == "null" {
		t.Errorf("%v is found in %v", found, lines)
	}
	if body := last.Get("data.0.request_body").Str; len(lines) == 2 && body != "body 1100." {
		t.Errorf("its body is %q", body)
	}
	for _, filter := range []string{contains("7."), `"filter":"all"`, contains("no such text"),
		`"filter":{"left":{"request_response_rmt":{"model":{"equals":"m1"}}},"operator":"and","right":{"request_response_rmt":{"request_body":{"contains":"3"}}}}`,
		`"filter":{"left":{"request_response_rmt":{"model":{"equals":"m1"}}},"operator":"or","right":{"request_response_rmt":{"request_body":{"contains":"3"}}}}`,
	} {
		if got, _ := search(filter + `,"includeContent":false,"limit":1000`); !slices.Equal(got, query(filter)) {
			t.Errorf("a search of %s finds %d, a query %d", filter, len(got), len(query(filter)))
		}
	}
	if got, _ := search(contains("body") + `,"timeFilter":{"startTimeUnixMs":1789999999900,"endTimeUnixMs":1789999999901}`); len(got) != 6 {
		t.Errorf("%d are found within two milliseconds that have 6", len(got))
	}

	// From any line it goes on, with whatever limit.
	var all []string
	for after, steps := "", 0; ; steps++ {
		_, lines := search(contains("7.") + `,"limit":` + fmt.Sprint(20+steps%5) + after)
		first := lines[0]
		for _, id := range first.Get("data.#.request_id").Array() {
			all = append(all, id.Str)
		}
		if first.Get("next").Raw == "null" {
			break
		}
		after = `,"after":` + first.Get("next").Raw
	}
	if want := query(contains("7.")); !slices.Equal(all, want) {
		t.Errorf("in parts, %d are found, want %d", len(all), len(want))
	}
}

// A client that leaves within a stream gives back its turn among the queries.
func TestStreamEndsWithItsClient(t *testing.T) {
	newSite(t)
	app, err := caddy.ActiveContext().App("llm")
	if err != nil {
		t.Fatal(err)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	for range 100 {
		if err := llmquery.Page(gone, app.(*llmapp.App)); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	waiting, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	over, ok := app.(*llmapp.App).Turns().Queries.Take(waiting, "key")
	if !ok {
		t.Fatal("there are no turns left")
	}
	over()
}
