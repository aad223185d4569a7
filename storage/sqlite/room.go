package sqlite

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/weirhq/weir/storage"
)

// room bounds the groups that queries have in memory.
type room struct {
	// totals are the groups that have totals at the same time, 120 bytes each, and cells
	// the parts of groups by time, 40 bytes each.
	totals, cells int
	// few groups are those that a query may have at any time. One query may have more, up
	// to most, 12 bytes each besides what the answer keeps of them.
	few, most int
}

var standardRoom = room{totals: 1 << 20, cells: 3 << 20, few: 1 << 18, most: 8 << 20}

// turn is what a query with many groups waits for: the memory of several would add up.
type turn struct {
	room
	// taken has an element while a query has its turn.
	taken chan struct{}
	mine  bool
	// many is true once there are more than a few groups.
	many bool
}

// errNotItsTurn ends a query that has many groups while another one has its turn. It begins
// anew when it has its own: others are not to wait for its connection until then.
var errNotItsTurn = errors.New("another query has many groups")

// grow is called when there are so many groups.
func (t *turn) grow(groups int) error {
	switch {
	case groups > t.most:
		return fmt.Errorf("more than %d groups: %w", t.most, storage.ErrTooManyGroups)
	case groups <= t.few || t.many:
		return nil
	case !t.mine:
		select {
		case t.taken <- struct{}{}:
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
func (t *turn) wait(ctx context.Context) error {
	select {
	case t.taken <- struct{}{}:
		t.mine = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t *turn) end() {
	if t.mine {
		<-t.taken
	}
}
