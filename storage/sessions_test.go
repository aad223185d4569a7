package storage_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// TestDerivedSessions holds that calls which name no session are in the session of the
// call that they continue, with that call, and that each cost is in one group.
func TestDerivedSessions(t *testing.T) {
	id := func(n byte) uuid.UUID { return uuid.UUID{15: n} }
	record := func(n byte, session string, root uuid.UUID, cost int64) *storage.Record {
		return &storage.Record{
			ID: id(n), Org: "acme", CreatedAt: storage.Timestamp(n), SessionID: session, RootID: root,
			Cost: plugins.KnownCost(plugins.Nanodollars(cost)),
		}
	}
	records := storage.Records{All: []*storage.Record{
		record(1, "", uuid.Nil, 1), record(2, "", id(1), 10), record(3, "", id(1), 100), // a tree
		record(4, "", uuid.Nil, 1000),                                            // alone
		record(5, "named", uuid.Nil, 10_000), record(6, "named", id(5), 100_000), // a tree that a caller named
		record(7, "", id(9), 1_000_000), // of a tree whose first call is gone
	}}
	for _, derived := range []bool{false, true} {
		q := &storage.SessionQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Limit: 10, Derived: derived}
		got, err := q.Answer(t.Context(), records)
		if err != nil {
			t.Fatal(err)
		}
		type session struct {
			id       string
			derived  bool
			requests int64
			cost     plugins.Nanodollars
		}
		want := []session{{"named", false, 2, 110_000}}
		if derived { // the newest first
			want = []session{{id(9).String(), true, 1, 1_000_000}, {"named", false, 2, 110_000}, {id(1).String(), true, 3, 111}}
		}
		if len(got) != len(want) {
			t.Fatalf("derived %v: %d sessions, want %d", derived, len(got), len(want))
		}
		for i, s := range got {
			if is := (session{s.SessionID, s.IsDerived, s.TotalRequests, s.TotalCost.N}); is != want[i] {
				t.Errorf("derived %v: %+v, want %+v", derived, is, want[i])
			}
		}
	}
	m := &storage.MetricsQuery{Org: "acme", Filter: storage.All{}, Window: storage.Always, Limit: 10, Bucket: storage.BucketNone, By: storage.Dimension{Name: storage.ByTree}}
	got, err := m.Answer(t.Context(), records)
	if err != nil {
		t.Fatal(err)
	}
	costs := make(map[string]plugins.Nanodollars)
	for _, g := range got.Groups {
		costs[*g.Key] = g.Totals.Cost.N
	}
	for key, cost := range map[string]plugins.Nanodollars{id(1).String(): 111, id(5).String(): 110_000, id(9).String(): 1_000_000, "": 1000} {
		if costs[key] != cost {
			t.Errorf("tree %s costs %d, want %d", key, costs[key], cost)
		}
	}
	if len(costs) != 4 {
		t.Errorf("%d groups", len(costs))
	}
}
