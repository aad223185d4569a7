package sqlite

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/weirhq/weir/storage/columnar"
)

// tailCache keeps the tail while somebody asks for it: it is read for the first query,
// and what has changed since for the next, until nobody has asked for some minutes.
type tailCache struct {
	engine *columnar.Engine
	limit  int // rows
	// commits is held while a batch is committed and its keys become known here, and
	// while a transaction begins to read both, which so are of one state.
	commits chan struct{}
	// refresh is held while the tail is brought up to date.
	refresh chan struct{}
	tail    *columnar.Tail

	mu sync.Mutex // guards follows and changed
	// follows is true while changed has what was committed since the last refresh.
	follows bool
	changed []int64
	idle    *time.Timer
}

const idleTimeout = 5 * time.Minute

func newTailCache(engine *columnar.Engine, limit int) *tailCache {
	k := &tailCache{engine: engine, limit: limit, commits: make(chan struct{}, 1), refresh: make(chan struct{}, 1)}
	k.idle = time.AfterFunc(idleTimeout, k.drop)
	return k
}

// lock waits until nobody else holds a lock; the caller then unlocks it.
func lock(ctx context.Context, mutex chan struct{}) (unlock func(), err error) {
	select {
	case mutex <- struct{}{}:
		return func() { <-mutex }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// turn waits until nobody else commits or begins to read.
func (k *tailCache) turn(ctx context.Context) (done func(), err error) { return lock(ctx, k.commits) }

// drop frees the memory; the next query reads the tail again.
func (k *tailCache) drop() {
	unlock, err := lock(context.Background(), k.refresh)
	if err != nil {
		return
	}
	defer unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tail, k.follows, k.changed = nil, false, nil
}

// close frees the memory for good.
func (k *tailCache) close() {
	k.idle.Stop()
	k.drop()
}

// follow takes the keys of the requests that a commit has changed.
func (k *tailCache) follow(changed []int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.follows {
		return
	}
	if len(k.changed)+len(changed) > k.limit {
		k.follows, k.changed = false, nil // to read all again is cheaper
		return
	}
	k.changed = append(k.changed, changed...)
}

// begin begins to read the database and the tail, nil if that is too large.
func (k *tailCache) begin(ctx context.Context, r reader) (*columnar.Tail, error) {
	k.idle.Reset(idleTimeout)
	unlock, err := lock(ctx, k.refresh)
	if err != nil {
		return nil, err
	}
	defer unlock()
	done, err := k.turn(ctx)
	if err != nil {
		return nil, err
	}
	err = r.begin(ctx)
	k.mu.Lock()
	if !k.follows {
		k.tail, k.follows = nil, true
	}
	changed := k.changed
	k.changed = nil
	k.mu.Unlock()
	done()
	if err == nil {
		err = k.update(ctx, r, changed)
	}
	if err != nil {
		k.mu.Lock()
		k.changed = append(changed, k.changed...) // what was done already can be done again
		k.mu.Unlock()
		return nil, err
	}
	if k.tail == nil {
		return nil, nil
	}
	return k.tail.Copy(), nil
}

// update brings the tail to what the reader sees; the keys are what has changed.
func (k *tailCache) update(ctx context.Context, r reader, changed []int64) error {
	after, err := r.c.integer(ctx, "SELECT coalesce(max(last), ?) FROM column_chunks WHERE file IS NOT NULL", int64(math.MinInt64))
	if err != nil {
		return err
	}
	if k.tail != nil {
		k.tail.Forget(after)
		if k.tail.Len()+len(changed) > k.limit {
			k.tail = nil
		}
	}
	if k.tail == nil {
		rows, err := r.c.integer(ctx, "SELECT count(*) FROM (SELECT 1 FROM requests WHERE n > ? LIMIT ?)", after, int64(k.limit)+1)
		if err != nil || rows > int64(k.limit) {
			return err
		}
		k.tail, changed = k.engine.NewTail(after), nil
	}
	return k.tail.Update(loader{ctx, r}, changed)
}
