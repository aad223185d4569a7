package llmquery_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// audit opens the audit log of the default store, and returns what lists the events since the last
// list, the oldest first: "action object details".
func (s *site) audit() (log control.Log, since func() []string) {
	s.t.Helper()
	err := errors.New("no store")
	for _, open := range stores.InUse() {
		if open.Name() == "default" {
			log, err = open.Control()
		}
	}
	if err != nil {
		s.t.Fatal(err)
	}
	seen := 0
	return log, func() (lines []string) {
		s.t.Helper()
		events, err := log.Events(s.t.Context(), "default", "", "", 5000)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range events[:len(events)-seen] {
			if e.Actor.Address != "127.0.0.1" || !strings.HasPrefix(e.Actor.Key, "sha256:") && e.Actor.Key != "public" {
				s.t.Errorf("the reader is %+v", e.Actor)
			}
			lines = append(lines, fmt.Sprint(e.Action, " ", e.Object, " ", string(e.After.Value)))
		}
		seen = len(events)
		slices.Reverse(lines)
		return lines
	}
}

// Whoever reads what others have sent is in the audit log: for each record once an hour, for an export
// or a list of first words once for a filter. The log has no content, and no value of a filter.
func TestReadsOfContentAreAudited(t *testing.T) {
	s := newSite(t)
	said := &storage.Content{Request: storage.Body{Type: "text/plain", Data: []byte("a secret")}}
	first, second := s.record("default", &storage.Record{Org: "default", UserID: "ada"}, said), s.record("default", &storage.Record{Org: "default", UserID: "ada"}, said)
	empty := s.record("default", &storage.Record{Org: "default"}, nil)
	if _, answer := s.do("GET", "/v1/request/"+first.String(), "root", ""); answer.Get("data.request_body").Str != "a secret" {
		t.Fatal("without an audit log, nobody reads")
	}
	log, events := s.audit()
	const ada, one = `{"request_response_rmt":{"user_id":{"equals":"ada"}}}`, `{"path":"/v1/request/{id}"}`
	list := func(path string) string { return `{"path":"` + path + `","searched":["user_id equals"]}` }
	for _, c := range []struct {
		name, method, path, key, body string
		want                          []string
	}{
		{"a record", "GET", "/v1/request/" + first.String(), "root", "", []string{"content.read " + first.String() + " " + one}},
		{"the same again", "GET", "/v1/request/" + first.String(), "root", "", nil},
		{"the same in a list", "POST", bulk, "root", `{"filter":` + ada + `}`, []string{"content.read " + second.String() + ` {"path":"` + bulk + `"}`}},
		{"somebody else", "GET", "/v1/request/" + first.String(), "reader", "", []string{"content.read " + first.String() + " " + one}},
		{"the public", "GET", "/public/v1/request/" + first.String(), "", "", []string{"content.read " + first.String() + " " + one}},
		{"nothing to read", "GET", "/v1/request/" + empty.String(), "root", "", nil},
		{"numbers", "POST", bulk, "root", `{"filter":` + ada + `,"includeContent":false}`, nil},
		{"first words", "POST", bulk, "root", `{"filter":` + ada + `,"includeContent":false,"includePreview":true}`, []string{"content.listed requests " + list(bulk)}},
		{"a search", "POST", "/v1/request/search", "root", `{"filter":` + ada + `,"includeContent":false,"includePreview":true}`, []string{"content.listed requests " + list("/v1/request/search")}},
		{"an export", "POST", "/v1/export", "root", `{"filter":` + ada + `}`, []string{"content.exported requests " + list("/v1/export")}},
		{"the same export", "POST", "/v1/export", "root", `{"filter":` + ada + `}`, nil},
		{"a table", "POST", "/v1/export", "reader", `{"filter":` + ada + `,"format":"csv"}`, nil},
		{"of another organisation", "POST", bulk, "acme", `{"filter":"all"}`, nil},
	} {
		response, answer := s.do(c.method, c.path, c.key, c.body)
		if got := events(); response.StatusCode != http.StatusOK || !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, the audit log has %q, want %q; %.300s", c.name, response.StatusCode, got, c.want, answer.Raw)
		}
	}

	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{bulk, `{"filter":` + ada + `}`, http.StatusServiceUnavailable}, {"/v1/export", `{}`, http.StatusServiceUnavailable},
		{bulk, `{"filter":` + ada + `,"includeContent":false}`, http.StatusOK},
	} {
		response, answer := s.do("POST", c.path, "reader", c.body)
		if response.StatusCode != c.want || strings.Contains(answer.Raw, "a secret") {
			t.Errorf("without its audit log, %s %s is answered %d %.300s", c.path, c.body, response.StatusCode, answer.Raw)
		}
	}
}

// A program that reads everything does not fill the audit log.
func TestReadsOfAnHourAreBounded(t *testing.T) {
	s := newSite(t)
	j := s.journal("default")
	for range 1010 {
		r := &storage.Record{ID: uuid.Must(uuid.NewV7()), Org: "default", CreatedAt: 1_790_000_000_000}
		if err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: storage.Body{Type: "text/plain", Data: []byte("x")}})); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, events := s.audit()
	s.do("POST", bulk, "root", `{"filter":"all","limit":990}`)
	if got := events(); len(got) != 990 {
		t.Errorf("%d events of 990 records", len(got))
	}
	s.do("POST", bulk, "root", `{"filter":"all","limit":20,"offset":990}`)
	if got := events(); len(got) != 11 || got[10] != `content.read requests {"path":"`+bulk+`","more_than":1000}` {
		t.Errorf("%d events: %q", len(got), got)
	}
	s.do("POST", bulk, "root", `{"filter":"all","limit":1000,"offset":5}`)
	s.do("POST", "/v1/export", "root", `{}`)
	if got := events(); len(got) != 1 || !strings.HasPrefix(got[0], "content.exported") {
		t.Errorf("then %q", got)
	}
}
