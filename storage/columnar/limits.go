package columnar

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/weirhq/weir/storage"
)

// Limits bounds the groups that queries have in memory.
type Limits struct {
	// Totals are the groups that have totals at the same time, 120 bytes each, and Cells
	// the parts of groups by time, 40 bytes each.
	Totals, Cells int
	// Few is how many groups a query may have at any time. A single query at a time may have
	// more, up to Most; a group takes 12 bytes besides what the answer keeps of it.
	Few, Most int
}

// StandardRoom bounds the groups to what takes some 350 MB: 126 MB for totals, as much for
// cells, and 100 MB for the most groups.
var StandardRoom = Limits{Totals: 1 << 20, Cells: 3 << 20, Few: 1 << 18, Most: 8 << 20}

// Turn is what a query with many groups waits for: the memory of several would add up.
type Turn struct {
	engine *Engine
	// mine is true while the query has its turn.
	mine bool
	// many is true once there are more than a few groups.
	many bool
}

// errNotItsTurn ends a query that has many groups while another query has the turn. The query
// begins anew when it has the turn itself: until then others need not wait for its connection.
var errNotItsTurn = errors.New("another query has many groups")

// grow admits a query whose groups have become that many. Many groups need the turn, of which there is
// one: if another query has it, grow returns errNotItsTurn. More groups than Limits.Most are
// ErrTooManyGroups.
func (t *Turn) grow(groups int) error {
	switch {
	case groups > t.engine.Limits.Most:
		return fmt.Errorf("more than %d groups: %w", t.engine.Limits.Most, storage.ErrTooManyGroups)
	case groups <= t.engine.Limits.Few || t.many:
		return nil
	case !t.mine:
		select {
		case t.engine.turn <- struct{}{}:
			t.mine = true
		default:
			return errNotItsTurn
		}
	}
	t.many = true
	// What the query before had is garbage by now, also what its answer was made of. Memory
	// would else grow to twice of what both had.
	runtime.GC()
	return nil
}

// wait waits for the turn.
func (t *Turn) wait(ctx context.Context) error {
	select {
	case t.engine.turn <- struct{}{}:
		t.mine = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *Turn) end() {
	if t.mine {
		<-t.engine.turn
	}
}
