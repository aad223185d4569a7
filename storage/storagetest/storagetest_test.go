package storagetest

import (
	"context"
	"slices"
	"testing"

	"github.com/weirhq/weir/storage"
)

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) storage.Backend { return &Memory{} }, Relaxed{})
}

// Random leaves are worth asking only when they tell records apart: each field
// and operator must be true of some record and false of another.
func TestFilterTellsRecordsApart(t *testing.T) {
	type comparison struct {
		*storage.Field
		storage.Operator
	}
	type outcomes struct{ yes, no bool }
	seen := make(map[comparison]outcomes)
	r := random(1)
	records, contents := Records(r, 100)
	for range 40_000 {
		l := leaf(r, records)
		o := seen[comparison{l.Field, l.Op}]
		if o.yes && o.no {
			continue
		}
		for _, rec := range records {
			if storage.Match(l, rec, func() *storage.Content { return contents.Of(rec) }) {
				o.yes = true
			} else {
				o.no = true
			}
		}
		seen[comparison{l.Field, l.Op}] = o
	}
	for _, f := range storage.Fields() {
		for _, op := range f.Kind.Operators() {
			want := outcomes{yes: f.Applies(), no: true}
			if got := seen[comparison{f, op}]; got != want {
				t.Errorf("%s.%s %s is %+v, want %+v", f.Group, f.Name, op, got, want)
			}
		}
	}
}

// A query must often enough have something to answer, and all parts of it must
// occur.
func TestQueryFindsRecords(t *testing.T) {
	r := random(2)
	records, contents := Records(r, 100)
	keys := make(map[storage.SortKey]bool)
	found, empty, branches := 0, 0, 0
	for range 1000 {
		q := Query(r, records)
		for _, s := range q.Sort {
			keys[s.Key] = true
		}
		if _, ok := q.Filter.(*storage.Branch); ok {
			branches++
		}
		if q.Limit == 0 || q.Offset > 0 {
			continue
		}
		if len(storage.Evaluate(q, records, contents.Of)) > 0 {
			found++
		} else {
			empty++
		}
	}
	if min(found, empty, branches) < 100 || len(keys) != len(sortKeys) {
		t.Errorf("of 1000 queries %d find records, %d find none, %d have branches, and %d sort keys occur", found, empty, branches, len(keys))
	}
}

func TestDifference(t *testing.T) {
	records, _ := Records(random(3), 2)
	if d := difference(records[0], records[0]); d != "" {
		t.Errorf("a record differs from itself in %s", d)
	}
	if d := difference(records[0], records[1]); d == "" {
		t.Error("two records do not differ")
	}
	empty, none := storage.Record{Assets: []string{}, Scores: map[string]float64{}}, storage.Record{}
	if d := difference(&empty, &none); d != "" {
		t.Errorf("an empty %s is a difference", d)
	}
}

// broken is a backend with one fault.
type broken struct {
	Memory
	fault func(page []*storage.Record) []*storage.Record
}

func (b *broken) Requests(ctx context.Context, q *storage.RequestQuery) ([]*storage.Record, error) {
	page, err := b.Memory.Requests(ctx, q)
	return b.fault(page), err
}

// What a backend answers wrongly must be seen.
func TestAgreesSeesFaults(t *testing.T) {
	records, contents := Records(random(4), 50)
	q := &storage.RequestQuery{Org: orgs[0], Filter: storage.All{}, Limit: 100}
	for name, fault := range map[string]func([]*storage.Record) []*storage.Record{
		"one missing":  func(page []*storage.Record) []*storage.Record { return page[1:] },
		"wrong order":  func(page []*storage.Record) []*storage.Record { slices.Reverse(page); return page },
		"one twice":    func(page []*storage.Record) []*storage.Record { page[0] = page[1]; return page },
		"one too many": func(page []*storage.Record) []*storage.Record { return append(page, page[0]) },
	} {
		s := start(t, opener{}, &broken{fault: fault}, contents)
		s.write(Batch(records, storage.Position{Segment: 1}))
		if s.agrees(q, records, contents) {
			t.Errorf("%s: the fault was not seen", name)
		}
	}
}
