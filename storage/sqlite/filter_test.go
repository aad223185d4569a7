package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Filters of any depth and width are answered as the evaluator answers them,
// whatever the bounds of SQLite are; also where they are decided on in memory.
func TestFiltersOfAnySize(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	traffic := newTraffic(10)
	write(t, b, traffic.batch(10))
	leaves := []*storage.Leaf{
		{Field: field("cost"), Op: storage.LT, Number: storage.DecimalOf(1e9)},
		{Field: field("properties"), Key: "Tenant", Op: storage.Contains, Text: "tenant"},
		{Field: field("model"), Op: storage.NotContains, Text: "x"},
		{Field: field("latency"), Op: storage.LT, Number: storage.DecimalOf(0)},
		{Field: field("scores"), Key: "accuracy", Op: storage.GT, Number: storage.DecimalOf(1)},
		{Field: field("properties"), Key: "Tenant", Op: storage.Equals, Text: "none"},
	}
	// chain joins n leaves; or tells whether the i-th branch is an "or".
	chain := func(n int, or func(i int) bool) storage.Filter {
		var f storage.Filter = leaves[0]
		for i := range n {
			f = &storage.Branch{Or: or(i), Left: leaves[i%len(leaves)], Right: f}
		}
		return f
	}
	alternating := func(i int) bool { return i%2 == 0 }
	tests := map[string]storage.Filter{"of labels": storage.All{}}
	for range 500 {
		tests["of labels"] = &storage.Branch{Left: leaves[5], Right: tests["of labels"]}
	}
	for _, n := range []int{10, 150, 500, 900, 15_000} {
		tests[fmt.Sprint("alternating ", n)] = chain(n, alternating)
		tests[fmt.Sprint("or ", n)] = chain(n, func(int) bool { return true })
		tests[fmt.Sprint("and ", n)] = chain(n, func(int) bool { return false })
	}
	everything, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "default", Filter: storage.All{}, Limit: 100})
	if err != nil || len(everything) != 10 {
		t.Fatalf("%d requests, %v", len(everything), err)
	}
	for name, f := range tests {
		t.Run(name, func(t *testing.T) {
			want := 0
			for _, r := range everything {
				if storage.Match(f, r, nil) {
					want++
				}
			}
			got, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "default", Filter: f, Limit: 100})
			if err != nil || len(got) != want {
				t.Errorf("%d requests, %v, want %d", len(got), err, want)
			}
			users, err := (&storage.UserQuery{Org: "default", Filter: f, Window: storage.Always, Limit: 100}).Answer(t.Context(), b)
			if err != nil || (users.Count > 0) != (want > 0) {
				t.Errorf("%+v, %v, want users of %d requests", users, err, want)
			}
		})
	}
}

func TestPageBeyondTheEnd(t *testing.T) {
	b := newBackend(t)
	traffic := newTraffic(10)
	write(t, b, traffic.batch(10))
	for name, q := range map[string]*storage.RequestQuery{
		"by time":   {Filter: storage.All{}},
		"by cost":   {Filter: storage.All{}, Sort: []storage.Sort{{Key: storage.SortCost}}},
		"random":    {Filter: storage.All{}, Random: true},
		"content":   {Filter: &storage.Leaf{Field: field("request_body"), Op: storage.Contains}},
		"by prompt": {Filter: storage.All{}, Sort: []storage.Sort{{Key: storage.SortRequestPrompt}}},
	} {
		q.Org = "default"
		for page, want := range map[[2]int]int{{0, math.MaxInt}: 10, {math.MaxInt, math.MaxInt}: 0, {7, 1000}: 3, {10, 1}: 0} {
			q.Offset, q.Limit = page[0], page[1]
			if got, err := b.Requests(t.Context(), q); err != nil || len(got) != want {
				t.Errorf("%s, offset %d, limit %d: %d records, %v, want %d", name, q.Offset, q.Limit, len(got), err, want)
			}
		}
	}
}

// A cursor with a value of another kind than its key has, as a client may make one,
// is the place of no record, and no error.
func TestCursorOfOtherKinds(t *testing.T) {
	b := newBackend(t)
	traffic := newTraffic(10)
	write(t, b, traffic.batch(10))
	texts := &storage.RequestQuery{Sort: []storage.Sort{{Key: storage.SortUserID}}}
	for _, key := range []storage.SortKey{storage.SortCreatedAt, storage.SortCost, storage.SortIsCached, storage.SortRequestPrompt} {
		q := &storage.RequestQuery{Org: "default", Filter: storage.All{}, Limit: 10, Sort: []storage.Sort{{Key: key}}}
		q.After = texts.Cursor(&storage.Record{UserID: "ann"}, nil)
		q.After.Sorts = q.Sort
		if _, err := b.Requests(t.Context(), q); err != nil {
			t.Errorf("sorted by %s: %v", key, err)
		}
	}
}

// A sort by a property reads the property of each request, so that it is refused before it
// begins if there are too many.
func TestSortByPropertyIsBounded(t *testing.T) {
	b := newBackend(t)
	traffic := newTraffic(10)
	write(t, b, traffic.batch(10))
	q := &storage.RequestQuery{Org: "default", Filter: storage.All{}, Limit: 5, Sort: []storage.Sort{{Key: storage.SortProperties, Name: "Tenant"}}}
	for most, want := range map[int]bool{10: true, 9: false} {
		b.sortedRequests = most
		page, err := b.Requests(t.Context(), q)
		var refused *storage.FilterError
		if ok := err == nil && len(page) == 5; ok != want || !ok && !errors.As(err, &refused) {
			t.Errorf("10 requests of at most %d: %d, %v", most, len(page), err)
		}
	}
}
func field(name string) *storage.Field { return storage.LookupField(storage.RequestResponse, name) }

func and(left, right storage.Filter) storage.Filter {
	return &storage.Branch{Left: left, Right: right}
}

func or(left, right storage.Filter) storage.Filter {
	return &storage.Branch{Left: left, Right: right, Or: true}
}

// keyReader notes of which records content is read.
type keyReader struct {
	noContents
	read map[storage.RecordKey]bool
}

func (k keyReader) Content(_ context.Context, r *storage.Record) (*storage.Content, error) {
	k.read[r.Key()] = true
	return &storage.Content{Request: storage.Body{Data: []byte("text")}}, nil
}

func (k keyReader) Reader(storage.ContentPart) storage.ContentReader { return k }

// Whoever reads content is told of which record, also by queries that read little else of it: what
// an erasure has chosen is hidden by the key.
func TestContentIsReadByTheKey(t *testing.T) {
	contents := keyReader{read: make(map[storage.RecordKey]bool)}
	b := New(filepath.Join(t.TempDir(), "weir.db"))
	if _, err := b.Open(t.Context(), hostOf(contents)); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	r := &storage.Record{ID: uuid.UUID{1}, Org: "acme", CreatedAt: 1_700_000_000_000, Content: storage.ContentRef{Segment: 1, Ordinal: 1}}
	write(t, b, &storage.Batch{Records: []*storage.Record{r}})
	filter, err := storage.ParseFilter([]byte(`{"request_response_rmt":{"request_body":{"contains":"text"}}}`), storage.RequestResponse)
	if err != nil {
		t.Fatal(err)
	}
	for _, random := range []bool{false, true} {
		clear(contents.read)
		found, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: filter, Random: random, Limit: 1})
		if err != nil || len(found) != 1 || len(contents.read) != 1 || !contents.read[r.Key()] {
			t.Errorf("random %t: %d found, content is read of %v: %v", random, len(found), contents.read, err)
		}
	}
	clear(contents.read)
	var requests int64
	err = b.Groups(t.Context(), &storage.GroupQuery{Org: "acme", Filter: filter, Window: storage.Always}, func(g *storage.GroupTotals) error {
		requests += g.Requests
		return nil
	})
	if err != nil || requests != 1 || len(contents.read) != 1 || !contents.read[r.Key()] {
		t.Errorf("%d counted, content is read of %v: %v", requests, contents.read, err)
	}
}
