//go:build !race

package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// words are contents of one word each, by their place. They count how often they are read, and rule
// out all content without the word of a filter if they search.
type words struct {
	of       map[storage.ContentRef]string
	searches bool
	reads    int
}

func (w *words) Content(_ context.Context, r *storage.Record) (*storage.Content, error) {
	w.reads++
	return &storage.Content{Request: storage.Body{Data: []byte(w.of[r.Content])}}, nil
}

func (w *words) Reader(storage.ContentPart) storage.ContentReader { return w }

func (w *words) Close() {}

func (w *words) Search(f storage.Filter) storage.ContentSearch {
	if !w.searches {
		return anything{}
	}
	for l := range storage.Leaves(f) {
		if l.Field.Content != 0 {
			return wordSearch{w, l.Text}
		}
	}
	return anything{}
}

type wordSearch struct {
	*words
	word string
}

func (s wordSearch) Candidates(segment uint64) func(uint32) bool {
	candidate := func(ordinal uint32) bool {
		return s.of[storage.ContentRef{Segment: segment, Ordinal: ordinal}] == s.word
	}
	for ref := range s.of {
		if ref.Segment == segment && candidate(ref.Ordinal) {
			return candidate
		}
	}
	return nil
}

// A search that rules out content changes no page and no order, and reads only what is left. The
// segments overlap in time, as those of calls that last.
func TestSearchReadsOnlyCandidates(t *testing.T) {
	const records = 6000
	r := rand.New(rand.NewPCG(5, 1))
	contents := &words{of: make(map[storage.ContentRef]string)}
	b := New(filepath.Join(t.TempDir(), "weir.db"))
	if _, err := b.Open(t.Context(), hostOf(contents)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	var all []*storage.Record
	for i := range records {
		rec := &storage.Record{ID: uuid.UUID{byte(i >> 8), byte(i)}, Org: "acme", CreatedAt: storage.Timestamp(1_700_000_000_000 + i*10 + r.IntN(3000)), UserID: fmt.Sprint("user", i%5)}
		rec.Content = storage.ContentRef{Segment: uint64(1 + i/2500), Ordinal: uint32(i % 2500)}
		contents.of[rec.Content] = []string{"common", "rare"}[min(1, i%97/96)]
		if i/2500 == 1 {
			contents.of[rec.Content] = "common" // a segment without the rare word
		}
		all = append(all, rec)
	}
	for some := range slices.Chunk(all, 500) {
		write(t, b, &storage.Batch{Records: some})
	}
	load := func(r *storage.Record) *storage.Content {
		return &storage.Content{Request: storage.Body{Data: []byte(contents.of[r.Content])}}
	}
	user := &storage.Leaf{Field: field("user_id"), Text: "user3"}
	for _, word := range []string{"common", "rare", "none"} {
		contains := &storage.Leaf{Field: field("request_body"), Op: storage.Contains, Text: word}
		for name, q := range map[string]*storage.RequestQuery{
			"newest":         {Filter: contains, Limit: 30},
			"second page":    {Filter: contains, Limit: 30, Offset: 20},
			"oldest":         {Filter: contains, Limit: 30, Sort: []storage.Sort{{Key: storage.SortCreatedAt}}},
			"slowest":        {Filter: contains, Limit: 30, Sort: []storage.Sort{{Key: storage.SortLatency, Desc: true}}},
			"of a user":      {Filter: and(contains, user), Limit: 30},
			"of other users": {Filter: and(contains, &storage.Leaf{Field: field("user_id"), Op: storage.NotEquals, Text: "user3"}), Limit: 30},
			"all":            {Filter: contains, Limit: records},
			"behind one":     {Filter: contains, Limit: 30, After: (&storage.RequestQuery{}).Cursor(all[3000], nil)},
		} {
			q.Org = "acme"
			want := storage.Evaluate(q, all, load)
			matching := len(storage.Evaluate(&storage.RequestQuery{Org: "acme", Filter: q.Filter, Limit: records}, all, load))
			for _, contents.searches = range []bool{false, true} {
				contents.reads = 0
				got, err := b.Requests(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.EqualFunc(got, want, func(a, b *storage.Record) bool { return a.ID == b.ID }) {
					t.Errorf("%s, %s, searches %v: %d records, want %d, or another order", word, name, contents.searches, len(got), len(want))
				}
				if contents.searches && contents.reads > matching {
					t.Errorf("%s, %s: %d contents were read, and %d match", word, name, contents.reads, matching)
				}
			}
		}
		q := &storage.RequestQuery{Org: "acme", Filter: contains, Limit: 10, Random: true}
		got, err := b.Requests(t.Context(), q)
		if err != nil || len(got) != min(10, len(storage.Evaluate(&storage.RequestQuery{Org: "acme", Filter: contains, Limit: 10}, all, load))) {
			t.Errorf("%s, random: %d, %v", word, len(got), err)
		}
	}
}
