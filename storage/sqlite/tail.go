package sqlite

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// tail has the newest requests in memory, which are in no file of columns yet: all
// behind a key. Its copies do not change when it does.
type tail struct {
	after int64
	// last is the largest key that has been read.
	last   int64
	chunks []chunk
}

// room is the chunk that takes the next row.
func (t *tail) room() *chunk {
	switch n := len(t.chunks); {
	case n == 0:
		t.chunks = append(t.chunks, chunk{})
	case len(t.chunks[n-1].n) >= chunkRows:
		t.chunks = append(t.chunks, t.chunks[n-1].next())
	}
	return &t.chunks[len(t.chunks)-1]
}

// rows counts the rows, also those that are deleted.
func (t *tail) rows() (rows int) {
	for i := range t.chunks {
		rows += len(t.chunks[i].n)
	}
	return rows
}

// remove takes a request away.
func (t *tail) remove(n int64) {
	for i := len(t.chunks) - 1; i >= 0; i-- {
		if t.chunks[i].delete(n) > 0 {
			return
		}
	}
}

// forget drops the chunks that have nothing behind a key.
func (t *tail) forget(after int64) {
	t.after, t.last = max(t.after, after), max(t.last, after)
	t.chunks = slices.DeleteFunc(t.chunks, func(c chunk) bool { return c.high <= after || c.live == 0 })
}

// copy is the tail as it is now, for reading.
func (t *tail) copy() *tail {
	c := *t
	for i := range t.chunks {
		t.chunks[i].shared = true
	}
	c.chunks = slices.Clone(t.chunks)
	return &c
}

// tailCache keeps the tail while somebody asks for it: it is read for the first query,
// and what has changed since for the next, until nobody has asked for some minutes.
type tailCache struct {
	limit int // rows
	// commits is held while a batch is committed and its keys become known here, and
	// while a transaction begins to read both, which so are of one state.
	commits chan struct{}
	// refresh is held while the tail is brought up to date.
	refresh chan struct{}
	tail    *tail

	mu sync.Mutex
	// follows is true while changed has what was committed since the last refresh.
	follows bool
	changed []int64
	idle    *time.Timer
}

// tailRows bounds the rows of a tail. There are as many as two chunks have before one
// goes to a file.
const tailRows = 512 << 10

const idleTimeout = 5 * time.Minute

func newTailCache(limit int) *tailCache {
	k := &tailCache{limit: limit, commits: make(chan struct{}, 1), refresh: make(chan struct{}, 1)}
	k.idle = time.AfterFunc(idleTimeout, k.drop)
	return k
}

// lock waits until nobody else holds a lock; the caller then unlocks it.
func lock(ctx context.Context, held chan struct{}) (unlock func(), err error) {
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
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
func (k *tailCache) begin(ctx context.Context, r reader) (*tail, error) {
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
		k.changed = append(changed, k.changed...) // what was done of it can be done again
		k.mu.Unlock()
		return nil, err
	}
	if k.tail == nil {
		return nil, nil
	}
	return k.tail.copy(), nil
}

// update brings the tail to what the reader sees; the keys are what has changed.
func (k *tailCache) update(ctx context.Context, r reader, changed []int64) error {
	after := int64(math.MinInt64)
	if err := r.c.query(ctx, "SELECT max(last) FROM column_chunks WHERE file IS NOT NULL", nil, optionalInteger(&after)); err != nil {
		return err
	}
	if k.tail != nil {
		k.tail.forget(after)
		if k.tail.rows()+len(changed) > k.limit {
			k.tail = nil
		}
	}
	l := loader{ctx, r}
	if k.tail == nil {
		rows, err := r.c.integer(ctx, "SELECT count(*) FROM (SELECT 1 FROM requests WHERE n > ? LIMIT ?)", after, int64(k.limit)+1)
		if err != nil || rows > int64(k.limit) {
			return err
		}
		k.tail, changed = &tail{after: after, last: after}, nil
	}
	t := k.tail
	changed = slices.DeleteFunc(slices.Clone(changed), func(n int64) bool { return n <= t.after || n > t.last })
	slices.Sort(changed)
	changed = slices.Compact(changed)
	for _, n := range changed {
		t.remove(n)
	}
	if len(changed) > 0 {
		if err := l.keys(changed, t.room); err != nil {
			return err
		}
	}
	for {
		rows, err := l.between(t.last, math.MaxInt64, chunkRows, t.room)
		for i := range t.chunks {
			t.last = max(t.last, t.chunks[i].high)
		}
		if err != nil || rows < chunkRows {
			return err
		}
	}
}
