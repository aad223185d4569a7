package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/storage"
)

// pool has the connections that read.
type pool struct {
	path string
	// idle are those that nobody uses, nil where none has been opened.
	idle chan *conn
	// stuck counts those that wait for somebody else's lock.
	stuck atomic.Int32
}

const (
	// maxReaders bounds the queries that run at a time; others wait for their turn.
	maxReaders = 4
	// lockWait bounds how long a query waits for somebody else's lock. SQLite waits
	// up to ten seconds, in C, whatever the context says (walTryBeginRead).
	lockWait = 2 * time.Second
)

var errLocked = fmt.Errorf("another process keeps the database locked: %w", storage.ErrUnavailable)

func newPool(path string) *pool {
	p := &pool{path: path, idle: make(chan *conn, maxReaders)}
	for range maxReaders {
		p.idle <- nil
	}
	return p
}

// take waits for a connection that can read. The caller gives it back.
func (p *pool) take(ctx context.Context) (*conn, error) {
	var c *conn
	wait := time.NewTicker(lockWait)
	defer wait.Stop()
	for waits := true; waits; {
		if p.stuck.Load() > 0 {
			return nil, errLocked
		}
		select {
		case c = <-p.idle:
			waits = false
		case <-wait.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	wait.Reset(lockWait)
	type probed struct {
		*conn
		error
	}
	result := make(chan probed)
	givenUp := make(chan struct{})
	go func() {
		c, err := p.probe(c)
		select {
		case result <- probed{c, err}:
		case <-givenUp:
			p.give(c)
			p.stuck.Add(-1)
		}
	}()
	select {
	case r := <-result:
		if r.error != nil {
			p.give(r.conn)
		}
		return r.conn, r.error
	case <-wait.C:
		p.stuck.Add(1)
		close(givenUp)
		return nil, errLocked
	}
}

// probe opens the connection, if it is not yet, and reads something, which waits
// for locks.
func (p *pool) probe(c *conn) (*conn, error) {
	var err error
	if c == nil {
		if c, err = openReader(p.path); err != nil {
			return nil, err
		}
	}
	_, err = c.integer(context.Background(), "SELECT 1 FROM journals")
	return c, err
}

// give puts a connection back.
func (p *pool) give(c *conn) {
	if c != nil && !c.AutoCommit() { // its transaction cannot be ended
		_ = c.Close()
		c = nil
	}
	p.idle <- c
}

// close waits until all connections are given back, and closes them.
func (p *pool) close() error {
	var err error
	for range maxReaders {
		if c := <-p.idle; c != nil {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}
