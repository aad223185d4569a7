package storage_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// backendOf is a backend that has records.
func backendOf(t *testing.T, records ...*storage.Record) storage.Backend {
	t.Helper()
	b := new(storagetest.Memory)
	if _, err := b.Open(t.Context(), &storage.Host{Contents: storagetest.Contents{}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Write(t.Context(), &storage.Batch{Records: records}); err != nil {
		t.Fatal(err)
	}
	return b
}

// describe writes a tree as its ids, own and total costs.
func describe(nodes []storage.SessionNode) (text string) {
	for _, n := range nodes {
		text += fmt.Sprintf("%*s%s %d/%d\n", n.Depth, "", n.ID[max(0, len(n.ID)-2):], n.Own.Cost.N, n.Total.Cost.N)
	}
	return text
}

func treeOf(t *testing.T, by storage.TreeNodes, records ...*storage.Record) string {
	t.Helper()
	for i, r := range records {
		r.Org, r.CreatedAt, r.Cost = "acme", storage.Timestamp(i+1), plugins.KnownCost(plugins.Nanodollars(1)<<i)
	}
	q := &storage.SessionTreeQuery{Org: "acme", Session: "s", By: by}
	nodes, err := q.Answer(t.Context(), backendOf(t, records...))
	if err != nil {
		t.Fatal(err)
	}
	return describe(nodes)
}

func TestATreeOfConversations(t *testing.T) {
	id := func(n byte) uuid.UUID { return uuid.UUID{15: n} }
	turn := func(n int64) plugins.Count { return plugins.Known(n) }
	got := treeOf(t, storage.ByConversation,
		&storage.Record{SessionID: "s", ID: id(1), Turn: turn(1)},
		&storage.Record{SessionID: "s", ID: id(2), Turn: turn(2), ParentID: id(1)},
		&storage.Record{SessionID: "s", ID: id(3), Turn: turn(1), ParentID: id(2)}, // a sub-agent
		&storage.Record{SessionID: "s", ID: id(4), Turn: turn(2), ParentID: id(3)},
		&storage.Record{SessionID: "s", ID: id(5), Turn: turn(2), ParentID: id(3), AttemptOf: id(4)},
		&storage.Record{SessionID: "s", ID: id(6), Turn: turn(3), ParentID: id(2)},
		&storage.Record{SessionID: "s", ID: id(7), ParentID: id(99)}, // of one that is gone
		&storage.Record{SessionID: "s", ID: id(8), ParentID: id(7)},
	)
	want := "01 35/63\n 03 28/28\n07 192/192\n"
	if got != want {
		t.Errorf("tree\n%swant\n%s", got, want)
	}
}

func TestATreeOfPaths(t *testing.T) {
	got := treeOf(t, storage.ByPath,
		&storage.Record{SessionID: "s", ID: uuid.New(), SessionPath: "/a/b"},
		&storage.Record{SessionID: "s", ID: uuid.New()},
		&storage.Record{SessionID: "s", ID: uuid.New(), SessionPath: "/c"},
		&storage.Record{SessionID: "s", ID: uuid.New(), SessionPath: "a//b/"},
	)
	want := "/ 2/15\n /a 0/9\n  /b 9/9\n /c 4/4\n"
	if got != want {
		t.Errorf("tree\n%swant\n%s", got, want)
	}
}

// Records that were imported may name each other.
func TestARingOfParentsIsCut(t *testing.T) {
	a, b, c, d := uuid.UUID{15: 1}, uuid.UUID{15: 2}, uuid.UUID{15: 3}, uuid.UUID{15: 4}
	for _, turns := range [][4]int64{{1, 1, 1, 1}, {2, 2, 2, 2}, {1, 2, 1, 2}, {2, 1, 2, 1}, {2, 2, 1, 1}, {1, 1, 2, 2}} {
		records := []*storage.Record{{ID: a, ParentID: c}, {ID: b, ParentID: a}, {ID: c, ParentID: b}, {ID: d, ParentID: d}}
		for i, r := range records {
			r.Org, r.SessionID, r.CreatedAt, r.Turn, r.Cost = "acme", "s", storage.Timestamp(i+1), plugins.Known(turns[i]), plugins.KnownCost(1)
		}
		q := &storage.SessionTreeQuery{Org: "acme", Session: "s", By: storage.ByConversation}
		nodes, err := q.Answer(t.Context(), backendOf(t, records...))
		var own, top plugins.Cost
		for _, n := range nodes {
			if own = own.Plus(n.Own.Cost); n.ParentID == nil {
				top = top.Plus(n.Total.Cost)
			}
		}
		if err != nil || own.N != 4 || top.N != 4 {
			t.Errorf("turns %v: own %d, total %d, %v\n%s", turns, own.N, top.N, err, describe(nodes))
		}
	}
}

// endless is a backend whose sessions have no end.
type endless struct {
	storage.Backend
	page []*storage.Record
}

func (e endless) Requests(_ context.Context, q *storage.RequestQuery) ([]*storage.Record, error) {
	return e.page[:q.Limit], nil
}

func TestATreeHasABound(t *testing.T) {
	page := make([]*storage.Record, 1000)
	for i := range page {
		page[i] = &storage.Record{ID: uuid.UUID{14: byte(i >> 8), 15: byte(i)}}
	}
	q := &storage.SessionTreeQuery{Org: "acme", Session: "s", By: storage.ByPath}
	if nodes, err := q.Answer(t.Context(), endless{page: page}); !errors.Is(err, storage.ErrTreeTooLarge) {
		t.Errorf("%d nodes, %v", len(nodes), err)
	}
}
