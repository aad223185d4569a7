package sqlite

import (
	"testing"

	"github.com/weirhq/weir/storage"
)

// The deepest and the largest filter that parse must compile: SQLite has limits
// of its own.
func TestLargestFilters(t *testing.T) {
	b := newBackend(t)
	traffic := newTraffic(10)
	write(t, b, traffic.batch(10))
	leaves := []*storage.Leaf{
		{Field: field("cost"), Op: storage.LT, Number: 1e9},
		{Field: field("properties"), Key: "Tenant", Op: storage.Contains, Text: "tenant"},
		{Field: field("model"), Op: storage.NotContains, Text: "x"},
		{Field: field("scores"), Key: "accuracy", Op: storage.GT, Number: 1},
	}
	leaf := func(i int) storage.Filter { return leaves[i%len(leaves)] }
	var deep storage.Filter = leaf(0)
	for i := range storage.MaxFilterDepth - 1 {
		deep = &storage.Branch{Or: i%2 == 0, Left: leaf(i), Right: deep}
	}
	var wide func(n int) storage.Filter
	wide = func(n int) storage.Filter {
		if n == 1 {
			return leaf(0)
		}
		return &storage.Branch{Or: n%3 == 0, Left: wide(n / 2), Right: wide(n - n/2)}
	}
	for name, f := range map[string]storage.Filter{"deep": deep, "wide": wide(storage.MaxFilterLeaves)} {
		got, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "default", Filter: f, Limit: 100})
		if err != nil || len(got) != 10 {
			t.Errorf("%s: %d records, %v", name, len(got), err)
		}
	}
}
