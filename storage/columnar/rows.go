package columnar

import (
	"cmp"
	"context"

	"github.com/weirhq/weir/storage"
)

// rows are storage.Rows that are read from files of columns and from the tail in memory, and
// from the source where neither has them.
type rows struct {
	ctx    context.Context
	source Source
	org    uint32 // 0 if there is none
	// dimensions are what the rows are grouped by. scores is true if the rows are scores.
	dimensions []*dimension
	scores     bool
	tail       *Tail // nil if it is too large
	// sessions are the sessions whose requests are scanned, all in window; nil for all requests.
	sessions map[Session]bool
	window   storage.Window
	turn     *Turn
	// failed is the error of Keys.
	failed error
}

// Keys are what groups stand for.
func (x *rows) Keys(dimension int, groups []int) []storage.Key {
	d, values := x.dimensions[dimension], make([]uint64, len(groups))
	for i, group := range groups {
		values[i] = *d.groups.values.At(group)
	}
	keys, err := d.keys(values)
	if err != nil {
		x.failed = cmp.Or(x.failed, err)
		return make([]storage.Key, len(groups))
	}
	for i, group := range groups {
		if group == 0 {
			keys[i] = storage.Key{}
		}
	}
	return keys
}

// Limits returns the limits of the engine: the groups and the cells that fit in memory at once.
func (x *rows) Limits() (groups, cells int) {
	return x.turn.engine.Limits.Totals, x.turn.engine.Limits.Cells
}

// Err is the error of the query's context.
func (x *rows) Err() error { return x.ctx.Err() }

var _ storage.Rows = (*rows)(nil)
