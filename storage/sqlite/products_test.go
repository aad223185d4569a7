//go:build !race && cgo && linux

package sqlite

import (
	"math/rand/v2"
	"testing"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// TestNoFilterIsAProduct holds that the work of a query is at most a constant times the records:
// of each leaf, of pairs, and of trees, about the newest requests, a sort of them, and their sums.
// SQLite walks a product if it goes through a list for each row of another one, or if it makes a
// list of the whole store for each chunk of the columns.
func TestNoFilterIsAProduct(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(7, 7))
	records, contents := spread(r, 1500)
	b := smallChunks(t)
	if _, err := b.Open(t.Context(), hostOf(contents)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	write(t, b, storagetest.Batch(records, storage.Position{Segment: 1}))
	settle(t, b)
	check := func(f storage.Filter) {
		list := &storage.RequestQuery{Org: "acme", Filter: f, Limit: 50}
		sorted := *list
		sorted.Sort = []storage.Sort{{Key: storage.SortCost, Desc: true}}
		sums := &storage.GroupQuery{Org: "acme", Filter: f, Window: storage.Always, By: []storage.Dimension{{Name: "model"}}}
		requests := func(q *storage.RequestQuery) error {
			_, err := b.Requests(t.Context(), q)
			return err
		}
		for name, do := range map[string]func() error{
			"newest": func() error { return requests(list) },
			"sorted": func() error { return requests(&sorted) },
			"sums": func() error {
				return b.Groups(t.Context(), sums, func(*storage.GroupTotals) error { return nil })
			},
		} {
			if n := steps(t, b, do); n > stepsPerRecord*len(records) {
				t.Errorf("%s take %d steps a record: %s", name, n/len(records), storage.AppendJSON(nil, f))
			}
		}
	}
	var leaves []*storage.Leaf
	for _, f := range storage.Fields() {
		for _, op := range f.Kind.Operators() {
			leaves = append(leaves, storagetest.LeafOf(r, records, f, op))
		}
	}
	for _, l := range leaves {
		check(l)
	}
	// A leaf of each way to find requests, with a value that many have.
	common := []storage.Filter{
		&storage.Leaf{Field: field("properties"), Key: "Env", Text: "alpha"},
		&storage.Leaf{Field: field("properties"), Key: "Env", Op: storage.Contains},
		&storage.Leaf{Field: field("properties"), Key: "env", Op: storage.NotContains, Text: "beta"},
		&storage.Leaf{Field: field("property_key"), Text: "a.b"},
		&storage.Leaf{Field: field("assets"), Text: "alpha"},
		&storage.Leaf{Field: field("assets"), Op: storage.Contains},
		&storage.Leaf{Field: field("scores"), Key: "quality", Op: storage.GTE},
		&storage.Leaf{Field: field("scores"), Key: "helpful", Op: storage.IsNull},
		&storage.Leaf{Field: field("scores_column"), Op: storage.Contains, Text: "quality"},
		&storage.Leaf{Field: field(storage.FeedbackScore), Bool: true},
		&storage.Leaf{Field: storage.LookupField(storage.FeedbackGroup, "id"), Op: storage.GT},
		&storage.Leaf{Field: field("response_id"), Text: "alpha"},
		&storage.Leaf{Field: field("user_id"), Text: "alpha"},
		&storage.Leaf{Field: field("session_id"), Text: "alpha"},
		&storage.Leaf{Field: field("model"), Op: storage.Contains, Text: "a"},
		&storage.Leaf{Field: field("request_body"), Op: storage.Contains, Text: "a"},
		&storage.Leaf{Field: field("latency"), Op: storage.GTE},
	}
	for i, l := range common {
		for _, other := range common[:i] {
			check(and(l, other))
		}
	}
	leaf := func() storage.Filter {
		l := leaves[r.IntN(len(leaves))]
		return storagetest.LeafOf(r, records, l.Field, l.Op)
	}
	branch := func(left, right storage.Filter) storage.Filter {
		return &storage.Branch{Or: r.IntN(2) == 0, Left: left, Right: right}
	}
	for range *workFilters {
		check(branch(leaf(), leaf()))
		check(branch(branch(leaf(), leaf()), common[r.IntN(len(common))]))
	}
}
