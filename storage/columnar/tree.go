package columnar

import (
	"slices"

	"github.com/weirhq/weir/storage"
)

// treeDimension groups the requests that a query chooses by the trees that they are in.
// The first request of a tree does not say that it is the first. The later requests name
// the first request, so that the later requests are looked for first.
func (x *rows) treeDimension(q *storage.GroupQuery) (*dimension, error) {
	d := x.textDimension(rootColumn)
	others := x.dimensions
	x.dimensions = []*dimension{d}
	err := x.Scan(&storage.Scan{
		Filter: q.Filter, Window: q.Window, Begin: func(storage.PartialSums) storage.PartialSums { return noSums{} },
		Merge: func(storage.PartialSums, [][]int) bool { return true },
	})
	x.dimensions = others
	if err != nil {
		return d, err
	}
	roots, err := x.roots(d.groups.list())
	d.name = ""
	d.begin = func(*scan) numberer {
		return func(c *Chunk, rows []int32, t *groupTable, groups []int) ([]int32, []int) {
			numberTexts(c.columns[rootColumn], rows, t, groups)
			for i, row := range rows {
				if groups[i] != 0 {
					continue
				}
				if root, ok := roots[c.n[row]]; ok {
					groups[i] = t.number(root)
				}
			}
			return rows, groups
		}
	}
	return d, err
}

// noSums are of a scan that looks for groups alone.
type noSums struct{}

// Add implements storage.PartialSums.
func (noSums) Add(*storage.RowBatch) bool { return true }

// Size implements storage.PartialSums.
func (noSums) Size() int { return 0 }

// End implements storage.PartialSums.
func (noSums) End() int { return 0 }

// treesAtOnce is the number of trees whose first requests are looked for at a time.
const treesAtOnce = 4 << 10

// roots are trees, which the ids of the names of their first requests stand for, by the keys of these
// requests, as far as they are in the store.
func (x *rows) roots(trees []uint64) (map[int64]uint64, error) {
	roots := make(map[int64]uint64, len(trees))
	for block := range slices.Chunk(trees, treesAtOnce) {
		ids, err := x.texts(block)
		if err == nil {
			err = x.source.Roots(ids, func(place int, key int64) { roots[key] = block[place] })
		}
		if err != nil {
			return nil, err
		}
	}
	return roots, nil
}
