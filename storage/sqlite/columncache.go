package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"
)

// columnCache keeps a table in memory while somebody asks for it: it is loaded for
// the first query and follows what is written, until nobody has asked for some
// minutes.
type columnCache struct {
	limit int // bytes
	// commits is held while a batch is committed and the table follows, and
	// while a transaction begins to read both, which so are of one state.
	commits chan struct{}

	mu      sync.Mutex
	table   *table
	copy    *table    // of table, nil after a change
	refused error     // why there is no table though there was a load
	large   time.Time // when a load found the records too many; else zero
	loading chan struct{}
	// missed are the changes since the load began to read.
	missing bool
	missed  []change
	idle    *time.Timer
}

const (
	tableLimit  = 256 << 20 // bytes
	idleTimeout = 5 * time.Minute
	loadTimeout = time.Minute
)

var errTooLarge = errors.New("the records are too many to keep in memory")

func newColumnCache(limit int) *columnCache {
	k := &columnCache{limit: limit, commits: make(chan struct{}, 1)}
	k.idle = time.AfterFunc(idleTimeout, k.drop)
	return k
}

// turn waits until nobody else commits or begins to read; the caller then gives
// the turn back.
func (k *columnCache) turn(ctx context.Context) (done func(), err error) {
	select {
	case k.commits <- struct{}{}:
		return func() { <-k.commits }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// drop frees the memory; the next query loads the table again.
func (k *columnCache) drop() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.table, k.copy, k.refused, k.large = nil, nil, nil, time.Time{}
}

// close frees the memory for good.
func (k *columnCache) close() {
	k.idle.Stop()
	k.drop()
}

// ready waits until the table is loaded, or known to be too large. load starts to
// load it. One that holds too much of what is gone serves until it is loaded anew,
// and where the records were too many, there is another try now and then.
func (k *columnCache) ready(ctx context.Context, load func()) error {
	k.mu.Lock()
	k.idle.Reset(idleTimeout)
	serves := k.table != nil || !k.large.IsZero()
	again := k.refused == nil && time.Since(k.large) > idleTimeout && (k.table == nil || k.table.stale())
	if k.loading == nil && (!serves || again) {
		k.loading, k.refused = make(chan struct{}), nil
		go load()
	}
	loading := k.loading
	k.mu.Unlock()
	if serves {
		return nil
	}
	select {
	case <-loading:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.refused
}

// load loads the table.
func (k *columnCache) load(ctx context.Context, r reader) error {
	done, err := k.turn(ctx)
	if err != nil {
		return err
	}
	err = r.begin(ctx)
	k.mu.Lock()
	k.missing = true
	k.mu.Unlock()
	done()
	if err != nil {
		return err
	}
	t, err := load(ctx, r, k.limit)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.missed {
		t.apply(c)
	}
	k.table, k.copy = t, nil
	return nil
}

// loaded ends a load.
func (k *columnCache) loaded(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	close(k.loading)
	k.large = time.Time{}
	if errors.Is(err, errTooLarge) {
		k.large, err = time.Now(), nil
	}
	k.loading, k.refused = nil, err
	k.missing, k.missed = false, nil
}

// follow applies what has been committed.
func (k *columnCache) follow(changes []change) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.missing {
		k.missed = append(k.missed, changes...)
	}
	if k.table == nil {
		return
	}
	for _, c := range changes {
		k.table.apply(c)
	}
	k.copy = nil
	if k.table.size() > k.limit {
		// Another load may find room: it leaves out what is gone.
		k.table = nil
	}
}

// begin begins to read the database and the table, nil if there is none.
func (k *columnCache) begin(ctx context.Context, r reader) (*table, error) {
	done, err := k.turn(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := r.begin(ctx); err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.copy == nil && k.table != nil {
		k.copy = k.table.copy()
	}
	return k.copy, nil
}
