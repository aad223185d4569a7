package sqlite

import (
	"math"
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
	deep := leaf(0)
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
