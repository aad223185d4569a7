package llmquery_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// chosen makes a random filter and, where the path takes one, a window. It returns the ids of
// the requests that they match, in an order.
func (o *oracle) chosen(path string, sort ...storage.Sort) (f fields, want []string) {
	q := storagetest.MetricsQuery(o.random, o.records)
	f.filter("filter", q.Filter)
	if path == bulk {
		q.Window = storage.Always
	} else {
		f.window("startTimeUnixMs", "endTimeUnixMs", q.Window, 1)
	}
	all := storage.Evaluate(&storage.RequestQuery{Org: "acme", Filter: q.Filter, Sort: sort, Limit: len(o.records)}, o.records, o.contents.Of)
	for _, r := range all {
		if q.Window.Contains(r.CreatedAt) {
			want = append(want, r.ID.String())
		}
	}
	return f, want
}

// export compares an export, in both formats.
func (o *oracle) export() {
	o.t.Helper()
	f, want := o.chosen("/v1/export", storage.Sort{Key: storage.SortCreatedAt})
	id := func(line string) string { return gjson.Get(line, "request_id").Str }
	if table := o.random.IntN(2) == 0; table {
		f.add("format", "csv")
		f.add("columns", []string{"request_id"})
		want = slices.Insert(want, 0, "request_id")
		id = strings.TrimSpace
	}
	response, _, body := o.fetch("POST", "/v1/export", "acme", f.String())
	var got []string
	for line := range strings.Lines(body) {
		got = append(got, id(line))
	}
	if response.StatusCode != http.StatusOK || !slices.Equal(got, want) {
		o.t.Errorf("/v1/export %s\nanswers %d %v\nwant %v", f, response.StatusCode, got, want)
	}
}

// pages compares the pages of a search and of a list, one after the other by their cursors.
// Each request that was there at the beginning comes once, in its order, whatever is written
// meanwhile.
func (o *oracle) pages() {
	o.t.Helper()
	path := []string{bulk, "/v1/request/search"}[o.random.IntN(2)]
	f, want := o.chosen(path)
	f.add("includeContent", false)
	f.add("limit", 1+o.random.IntN(30))
	var got []string
	for page, after := 0, ""; page == 0 || after != ""; page++ {
		body := slices.Clone(f)
		if after != "" {
			body.add("after", after)
		}
		response, _, text := o.fetch("POST", path, "acme", body.String())
		if response.StatusCode != http.StatusOK {
			o.t.Fatalf("%s %s: %d %s", path, body, response.StatusCode, text)
		}
		var last gjson.Result
		for line := range strings.Lines(text) {
			last = gjson.Parse(line)
			for _, id := range last.Get("data.#.request_id").Array() {
				got = append(got, id.Str)
			}
		}
		after = last.Get("next").Str
		if len(o.later) > 0 && o.random.IntN(4) == 0 {
			o.write(o.later[:1])
			o.later = o.later[1:]
		}
	}
	came := make(map[string]bool)
	got = slices.DeleteFunc(got, func(id string) bool {
		if came[id] {
			o.t.Errorf("%s %s: %s came twice", path, f, id)
		}
		came[id] = true
		return !slices.Contains(want, id) // it was written meanwhile
	})
	if !slices.Equal(got, want) {
		o.t.Errorf("%s %s\nanswers %v\nwant %v", path, f, got, want)
	}
}

// tree compares the tree of a session, or of a request that begins one.
func (o *oracle) tree() {
	o.t.Helper()
	of := o.records[o.random.IntN(len(o.records))]
	names := []string{of.SessionID, of.RootID.String(), of.ID.String(), uuid.NewString()}
	q := &storage.SessionTreeQuery{
		Org: "acme", Session: names[o.random.IntN(len(names))], By: []storage.TreeNodes{storage.ByConversation, storage.ByPath}[o.random.IntN(2)],
	}
	if q.Session == "" {
		return
	}
	var f fields
	f.add("sessionId", q.Session)
	f.add("by", q.By)
	memory := new(storagetest.Memory)
	_, err := memory.Open(o.t.Context(), &storage.Host{Contents: o.contents})
	if err == nil {
		err = memory.Write(o.t.Context(), storagetest.Batch(o.records, storage.Position{Segment: 1}))
	}
	if err != nil {
		o.t.Fatal(err)
	}
	want, err := q.Answer(o.t.Context(), memory)
	if errors.Is(err, storage.ErrNotFound) {
		if response, _ := o.do("POST", "/v1/session/tree/query", "acme", f.String()); response.StatusCode != http.StatusNotFound {
			o.t.Errorf("the tree %s: %d", f, response.StatusCode)
		}
		return
	}
	o.same("/v1/session/tree/query", f, want, err)
}
