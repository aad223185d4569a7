package storagetest

import (
	"context"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/weirhq/weir/storage"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // thousands of queries in a small heap
	m.Run()
}

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) storage.Backend { return &Memory{} }, Relaxed{})
}

// Random leaves are worth asking only when they tell records apart: each field
// and operator must be true of some record and false of another.
func TestFilterTellsRecordsApart(t *testing.T) {
	r := random(2)
	records, contents := Records(r, 100)
	for _, f := range storage.Fields() {
		for _, op := range f.Kind.Operators() {
			var yes, no bool
			for tries := 0; tries < 5000 && !(no && yes == f.Applies()); tries++ {
				l := LeafOf(r, records, f, op)
				for _, rec := range records {
					if storage.Match(l, rec, func() *storage.Content { return contents.Of(rec) }) {
						yes = true
					} else {
						no = true
					}
				}
			}
			if yes != f.Applies() || !no {
				t.Errorf("%s.%s %s is true of some record: %t, want %t; false of another: %t", f.Group, f.Name, op, yes, f.Applies(), no)
			}
		}
	}
}

// Whatever leaves a backend declares to answer, and however much more it answers of
// those that it does not answer exactly, a planned filter is true of the same records.
func TestPlansAnswerAsTheFilter(t *testing.T) {
	r := random(5)
	records, contents := Records(r, 60)
	exact, prefiltered := 0, 0
	for range 3000 {
		f := Filter(r, records)
		declared := make(map[*storage.Leaf]storage.Support)
		likely := pick(r, []storage.Support{storage.Unsupported, storage.Superset, storage.Exact})
		allExact := true
		for l := range storage.Leaves(f) {
			if declared[l] = likely; chance(r, 3) {
				declared[l] = storage.Support(r.IntN(3))
			}
			allExact = allExact && declared[l] == storage.Exact
		}
		plan := storage.PlanFilter(f, func(l *storage.Leaf) storage.Support { return declared[l] })
		for l := range storage.Leaves(plan.Prefilter) {
			if declared[l] == storage.Unsupported {
				t.Fatalf("the backend is asked for a leaf that it does not support: %s", storage.AppendJSON(nil, plan.Prefilter))
			}
		}
		if allExact != (plan.Residual == storage.All{}) {
			t.Fatalf("the residual of %s is %s; exact: %v", storage.AppendJSON(nil, f), storage.AppendJSON(nil, plan.Residual), allExact)
		}
		program := storage.Compile(plan.Prefilter, nil)
		for _, rec := range records {
			load := func() *storage.Content { return contents.Of(rec) }
			passes := program.Run(func(step int) bool {
				l := program.Steps[step].Filter.(*storage.Leaf)
				return storage.Match(l, rec, load) || declared[l] == storage.Superset && chance(r, 2)
			})
			if !passes {
				prefiltered++
			}
			if got, want := passes && storage.Match(plan.Residual, rec, load), storage.Match(f, rec, load); got != want {
				t.Fatalf("%s is %v of a record, planned %v: %s and then %s", storage.AppendJSON(nil, f), want, got,
					storage.AppendJSON(nil, plan.Prefilter), storage.AppendJSON(nil, plan.Residual))
			}
		}
		if allExact {
			exact++
		}
	}
	if exact < 100 || prefiltered < 10_000 {
		t.Errorf("of 3000 plans %d are exact, and %d records do not pass", exact, prefiltered)
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
	if min(found, empty, branches) < 100 || len(keys) != len(storage.SortKeys()) {
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
