package storage

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// TestDistribution holds that values which are counted have the percentiles of the values
// themselves, also after distributions are merged.
func TestDistribution(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, wide := range []int{0, 2} {
		for _, sizes := range [][]int{{0}, {1}, {2, 0, 1}, {31, 33}, {40}, slices.Repeat([]int{100}, 30), {100, fewValues - 101}, {fewValues, 10}, {10, manyFresh - 11, 2}, {manyFresh, manyFresh + 5000}} {
			var whole distribution
			var values []plugins.Milliseconds
			for _, size := range sizes {
				var part distribution
				for i := range size {
					v := plugins.Milliseconds(r.Int64N(1 << (4 + r.IntN(16)))) // some have no place in counts
					if i < wide {
						v = plugins.Milliseconds(1-2*i) * (1 << 40)
					}
					part.add(v)
					values = append(values, v)
				}
				part.compact()
				whole.merge(&part)
			}
			if got, want := whole.percentiles(), percentilesOf(values); got != want {
				t.Errorf("%v values, %d of them wide: %+v, want %+v", sizes, wide, got, want)
			}
		}
	}
}
