package llmquery_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/storage"
)

// event is one of a stream.
type event struct{ id, name, data string }

// tailing follows a site until the test ends, or leave is called.
func (s *site) tailing(filter, lastID string) (events <-chan event, leave func()) {
	s.t.Helper()
	ctx, leave := context.WithCancel(s.t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/request/tail?filter="+url.QueryEscape(filter), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer root")
	r.Header.Set("Last-Event-ID", lastID)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != "text/event-stream" {
		s.t.Fatalf("%d %s", response.StatusCode, got)
	}
	all := make(chan event, 1000)
	go func() {
		defer close(all)
		defer response.Body.Close()
		var e event
		for lines := bufio.NewScanner(response.Body); lines.Scan(); {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch {
			case field == "id":
				e.id = value
			case field == "event":
				e.name = value
			case field == "data":
				e.data = value
			case field == "" && value == "" && e.data != "":
				all <- e
				e = event{}
			}
		}
	}()
	return all, leave
}

func (e event) request() string { return gjson.Get(e.data, "request_id").Str }

// Each request that matches comes once, in the order in which it was recorded, also
// over a connection that breaks off.
func TestTail(t *testing.T) {
	s := newSite(t)
	record := func(org, model string) string {
		return s.record("default", &storage.Record{Org: org, Model: model}, &storage.Content{Request: storage.Body{Type: "text/plain", Data: []byte("needle")}}).String()
	}
	record("default", "m") // before anybody follows
	events, leave := s.tailing(`{"request_response_rmt":{"model":{"equals":"m"}}}`, "")
	searching, _ := s.tailing(`{"request_response_rmt":{"request_body":{"contains":"NEEDLE"}}}`, "")
	record("acme", "m")
	record("default", "other")
	want := []string{record("default", "m"), record("default", "m")}
	var last event
	for _, id := range want {
		if last = <-events; last.request() != id || last.name != "" || gjson.Get(last.data, "request_body").Exists() {
			t.Fatalf("%+v, want %s", last, id)
		}
	}
	if found := <-searching; gjson.Get(found.data, "model").Str != "other" {
		t.Errorf("of content, %+v was found first", found)
	}
	if !regexp.MustCompile("^[0-9a-f]{32}$").MatchString(last.id) {
		t.Errorf("the id %s tells how much others record", last.id)
	}
	leave()
	for range events { //nolint:revive // until it has ended
	}
	away := []string{record("default", "m"), record("default", "m")}
	again, _ := s.tailing(`{"request_response_rmt":{"model":{"equals":"m"}}}`, last.id)
	away = append(away, record("default", "m"))
	for _, id := range away {
		if e := <-again; e.request() != id {
			t.Fatalf("after coming again: %+v, want %s", e, id)
		}
	}
}

// Who follows from what is not known any more is told so.
func TestTailFromTheUnknown(t *testing.T) {
	s := newSite(t)
	s.tailing(`"all"`, "") // records are kept while somebody follows
	id := s.record("default", &storage.Record{Org: "default"}, nil).String()
	events, _ := s.tailing(`"all"`, "99.7")
	if e := <-events; e.name != "skipped" || e.data != `{"count":null}` {
		t.Errorf("%+v", e)
	}
	if e := <-events; e.request() != id {
		t.Errorf("%+v, want %s", e, id)
	}
}

// A client is not sent more than it can show; it is told how many it misses.
func TestTailOfTooMany(t *testing.T) {
	s := newSite(t)
	events, _ := s.tailing("", "")
	j := s.journal("default")
	const records = 900
	for range records {
		if err := j.Append(&storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "default", CreatedAt: 1_790_000_000_000}, nil); err != nil {
			t.Fatal(err)
		}
	}
	sent, skipped := 0, 0
	for sent+skipped < records {
		if e := <-events; e.name == "skipped" {
			skipped += int(gjson.Get(e.data, "count").Int())
		} else {
			sent++
		}
	}
	if sent < 200 || sent+skipped != records {
		t.Errorf("%d were sent and %d skipped of %d", sent, skipped, records)
	}
}

func TestTailEndsWithTheServer(t *testing.T) {
	s := newSite(t)
	events, _ := s.tailing("", "")
	if err := caddy.Stop(); err != nil {
		t.Fatal(err)
	}
	for e := range events {
		t.Errorf("%+v", e)
	}
}

func TestTailRefusesWhatItDoesNotKnow(t *testing.T) {
	s := newSite(t)
	for path, want := range map[string]string{
		"/v1/request/tail?filtr=%22all%22":                                          `unknown parameter "filtr" (did you mean "filter"?)`,
		"/v1/request/tail?filter={%22users_view%22:{%22user_cost%22:{%22gt%22:1}}}": "filter: leaves of users_view are not taken here",
		"/v1/request/tail?filter=7":                                                 "filter: ",
	} {
		response, answer := s.do("GET", path, "root", "")
		if response.StatusCode != http.StatusBadRequest || !strings.HasPrefix(answer.Get("error").Str, want) {
			t.Errorf("%s: %d %s", path, response.StatusCode, answer)
		}
	}
	if _, answer := s.do("GET", "/v1/request/tail", "", ""); answer.Get("error").Str == "" {
		t.Error("without a key there are events: ", fmt.Sprint(answer))
	}
}
