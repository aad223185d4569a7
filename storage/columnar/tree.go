package columnar

import (
	"slices"

	"github.com/weirhq/weir/storage"
)

// treeDimension groups the requests that a query chooses by the trees that they are in.
// The first request of a tree does not say that it is the first. The later requests name
// the first request, so that the later requests are looked for first.
func (x *rows) treeDimension(q *storage.GroupQuery) (dimension, error) {
	d := x.textDimension(rootColumn)
	others := x.dimensions
	x.dimensions = []dimension{d}
	err := x.Scan(q.Filter, q.Window, storage.CountParts, func(*storage.RowBatch) bool { return true })
	x.dimensions = others
	if err != nil {
		return d, err
	}
	roots, err := x.roots(d)
	named := d.numbers
	d.numbers = func(c *Chunk, rows []int32, groups []int) {
		named(c, rows, groups)
		for i, row := range rows {
			if groups[i] == 0 {
				groups[i] = roots[c.n[row]]
			}
		}
	}
	return d, err
}

// treesAtOnce is for how many trees the first requests are looked for at a time.
const treesAtOnce = 4 << 10

// roots are the groups of trees by the keys of their first requests, as far as these
// are in the store.
func (x *rows) roots(d dimension) (map[int64]int, error) {
	trees := d.texts.len - 1
	roots := make(map[int64]int, trees)
	groups := make([]int, trees)
	for i := range groups {
		groups[i] = i + 1
	}
	for block := range slices.Chunk(groups, treesAtOnce) {
		ids := d.texts.textsOf(block)
		if x.failed != nil {
			return nil, x.failed
		}
		err := x.source.Roots(ids, func(place int, key int64) { roots[key] = block[place] })
		if err != nil {
			return nil, err
		}
	}
	return roots, nil
}
