package sqlite

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/weirhq/weir/storage/columnar"
)

// tailCache keeps the tail in memory: the requests that are in no column file yet. The first query reads
// all of it, and later queries only what has changed since. It is freed after idleTimeout without a query.
type tailCache struct {
	engine *columnar.Engine
	limit  int // rows; a longer tail is not kept
	// commitLock makes the database and changed show the same state. It is held while a batch is committed
	// and added to changed, and while a query begins its transaction and takes changed.
	commitLock ctxMutex
	// tailLock guards tail.
	tailLock ctxMutex
	tail     *columnar.Tail // nil if it was not read, or is too long

	mu sync.Mutex // guards tracking and changed
	// tracking is true while changed has all commits since the tail was read.
	tracking bool
	changed  []int64 // keys of requests
	idle     *time.Timer
}

// idleTimeout is how long the tail stays in memory after a query.
const idleTimeout = 5 * time.Minute

func newTailCache(engine *columnar.Engine, limit int) *tailCache {
	c := &tailCache{engine: engine, limit: limit, commitLock: make(ctxMutex, 1), tailLock: make(ctxMutex, 1)}
	c.idle = time.AfterFunc(idleTimeout, c.drop)
	return c
}

// ctxMutex is a mutex for which one waits no longer than a context. It is a channel with room for one element.
type ctxMutex chan struct{}

// lock waits for the mutex, or until ctx ends.
func (m ctxMutex) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case m <- struct{}{}:
		return func() { <-m }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// drop frees the memory. The next query reads the tail again.
func (c *tailCache) drop() {
	unlock, _ := c.tailLock.lock(context.Background()) // which never ends
	defer unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tail, c.tracking, c.changed = nil, false, nil
}

// close frees the memory. The cache must not be used again.
func (c *tailCache) close() {
	c.idle.Stop()
	c.drop()
}

// noteCommit adds the keys of the requests that a commit has changed. The caller holds commitLock.
func (c *tailCache) noteCommit(changed []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.tracking {
		return
	}
	if len(c.changed)+len(changed) > c.limit {
		c.tracking, c.changed = false, nil // it is cheaper to read the whole tail again
		return
	}
	c.changed = append(c.changed, changed...)
}

// begin begins the transaction of r, and returns the tail in the same state of the database. The tail is
// nil if it is too long: the caller reads it from the database.
func (c *tailCache) begin(ctx context.Context, r reader) (*columnar.Tail, error) {
	c.idle.Reset(idleTimeout)
	unlockTail, err := c.tailLock.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlockTail()
	unlockCommits, err := c.commitLock.lock(ctx)
	if err != nil {
		return nil, err
	}
	err = r.begin(ctx)
	c.mu.Lock()
	if !c.tracking {
		c.tail, c.tracking = nil, true
	}
	changed := c.changed
	c.changed = nil
	c.mu.Unlock()
	unlockCommits()
	if err == nil {
		err = c.update(ctx, r, changed)
	}
	if err != nil {
		c.mu.Lock()
		c.changed = append(changed, c.changed...) // for the next query; some may then be read twice
		c.mu.Unlock()
		return nil, err
	}
	if c.tail == nil {
		return nil, nil
	}
	return c.tail.Copy(), nil
}

// update brings the tail to the state that r sees. changed are the keys of the requests that have changed
// since the last update. The caller holds tailLock.
func (c *tailCache) update(ctx context.Context, r reader, changed []int64) error {
	after, err := r.c.integer(ctx, "SELECT coalesce(max(last), ?) FROM column_chunks WHERE file IS NOT NULL", int64(math.MinInt64))
	if err != nil {
		return err
	}
	if c.tail != nil {
		c.tail.Forget(after)
		if c.tail.Len()+len(changed) > c.limit {
			c.tail = nil
		}
	}
	if c.tail == nil {
		rows, err := r.c.integer(ctx, "SELECT count(*) FROM (SELECT 1 FROM requests WHERE n > ? LIMIT ?)", after, int64(c.limit)+1)
		if err != nil || rows > int64(c.limit) {
			return err
		}
		c.tail, changed = c.engine.NewTail(after), nil
	}
	return c.tail.Update(loader{ctx, r}, changed)
}
