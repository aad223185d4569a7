package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/internal/libsqlite"
	"github.com/weirhq/weir/storage"
)

// conn is one connection, used below database/sql: it prepares each statement
// once and converts no values.
type conn struct {
	libsqlite.Conn
	prepared map[string]*statement // what exec runs: a dozen statements of the writer
	args     []driver.NamedValue   // of queries; reused: the driver copies values as it binds them
}

// statement is a prepared statement with the arguments of its next run.
type statement struct {
	driver.Stmt
	args    []driver.NamedValue
	ordinal int
}

// bind sets the next argument. A parameter that nothing is bound to is NULL: half
// of a record's are, and each binding is a call into C.
func (s *statement) bind(v driver.Value) {
	s.ordinal++
	if v != nil || libsqlite.BindsNull {
		s.args = append(s.args, driver.NamedValue{Ordinal: s.ordinal, Value: v})
	}
}

// exec runs the statement, which is short enough not to be interrupted.
func (s *statement) exec() (driver.Result, error) {
	return s.Stmt.(driver.StmtExecContext).ExecContext(context.Background(), s.args)
}

// pageCache bounds the memory of one connection. More does not make batches
// cheaper, as the operating system caches the file too.
const pageCache = "PRAGMA cache_size = -8192" // KiB

// What a power cut takes of the newest batches the journal still has, until a
// batch leaves a segment: then all before must be on the disk.
const (
	synchronousNormal = "PRAGMA synchronous = NORMAL"
	synchronousFull   = "PRAGMA synchronous = FULL"
)

const temporaryInMemory = "PRAGMA temp_store = MEMORY"

// openWriter opens the connection that writes. Whoever copies or repairs the
// file may lock it for a while; the host tries again when that takes longer than
// the busy timeout.
func openWriter(path string) (*conn, error) {
	return open(path, url.Values{"mode": {"rw"}, "_txlock": {"immediate"}},
		"PRAGMA busy_timeout = 1000",
		"PRAGMA page_size = 8192", // this and the next before the file has its first page
		"PRAGMA auto_vacuum = INCREMENTAL",
		"PRAGMA journal_mode = WAL",
		synchronousNormal,
		"PRAGMA wal_autocheckpoint = 4000",
		"PRAGMA journal_size_limit = 67108864",
		"PRAGMA secure_delete = ON", // zeros in place of what was deleted
		temporaryInMemory,
		pageCache,
	)
}

// openReader opens a connection that cannot write.
func openReader(path string) (*conn, error) {
	return open(path, url.Values{"mode": {"ro"}},
		"PRAGMA busy_timeout = 1000",
		"PRAGMA query_only = ON",
		temporaryInMemory,
		pageCache,
	)
}

// openNew opens a connection to a file that nobody else uses.
func openNew(path string, pragmas ...string) (*conn, error) {
	return open(path, url.Values{"mode": {"rw"}}, pragmas...)
}

func open(path string, parameters url.Values, pragmas ...string) (*conn, error) {
	parameters.Set("_stmt_cache_size", "64")
	parameters.Set("_mutex", "no") // one goroutine at a time uses a connection
	opened, err := libsqlite.Open(libsqlite.URI(path, parameters), "name_hash", nameHash)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: opened, prepared: make(map[string]*statement)}
	for _, p := range pragmas {
		if _, err := c.exec(p); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	return c, nil
}

// exec runs a statement that is short enough not to be interrupted. One with
// arguments stays prepared.
func (c *conn) exec(text string, args ...driver.Value) (driver.Result, error) {
	if len(args) == 0 {
		return c.ExecContext(context.Background(), text, nil)
	}
	s, err := c.prepare(text)
	if err != nil {
		return nil, err
	}
	for _, a := range args {
		s.bind(a)
	}
	return s.exec()
}

// prepare returns the statement of a text, without arguments. Each text has a single
// statement.
func (c *conn) prepare(text string) (*statement, error) {
	s, ok := c.prepared[text]
	if !ok {
		prepared, err := c.Prepare(text)
		if err != nil {
			return nil, err
		}
		s = &statement{Stmt: prepared}
		c.prepared[text] = s
	}
	clear(s.args)
	s.args, s.ordinal = s.args[:0], 0
	return s, nil
}

// Close closes the connection and what it prepared.
func (c *conn) Close() error {
	var err error
	for _, s := range c.prepared {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, c.Conn.Close())
}

// query calls each for every row until each fails; errStop ends the query without an error.
// query reuses the memory of the row. It ends early with ctx.
func (c *conn) query(ctx context.Context, query string, args []driver.Value, each func(row []driver.Value) error) (err error) {
	defer recoverType(&err)
	c.args = c.args[:0]
	for i, a := range args {
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	rows, err := c.QueryContext(ctx, query, c.args)
	if err != nil {
		return err
	}
	defer rows.Close()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := each(row); errors.Is(err, errStop) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

var errStop = errors.New("stop")

// integer answers a query for one integer, 0 when there is no row or no value.
func (c *conn) integer(ctx context.Context, query string, args ...driver.Value) (n int64, err error) {
	err = c.query(ctx, query, args, func(row []driver.Value) error {
		n, _ = row[0].(int64)
		return errStop
	})
	return n, err
}

// integers returns the integers that a query finds, one in each row.
func (c *conn) integers(ctx context.Context, query string, args ...driver.Value) (all []int64, err error) {
	err = c.query(ctx, query, args, func(row []driver.Value) error {
		all = append(all, row[0].(int64))
		return nil
	})
	return all, err
}

// transaction does all of do or nothing. For a writer it takes the lock first.
func (c *conn) transaction(ctx context.Context, do func() error) (err error) {
	tx, err := c.BeginTx(ctx, driver.TxOptions{})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, rollback(c, tx))
		}
	}()
	if err := do(); err != nil {
		return err
	}
	return tx.Commit()
}

// rollback ends a transaction that failed. SQLite has rolled back some transactions itself,
// such as after a full disk.
func rollback(c *conn, tx driver.Tx) error {
	if c.AutoCommit() {
		return nil
	}
	return tx.Rollback()
}

// pool has the connections that read.
type pool struct {
	path string
	// turns has an element for each query that may begin.
	turns chan struct{}
	// idle are the opened connections that nobody uses. The last one was used last, and is the
	// next: the memory of the others' caches stays untouched.
	idle []*conn
	mu   sync.Mutex // guards idle
	// stuck counts the connections that wait for somebody else's lock.
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
	p := &pool{path: path, turns: make(chan struct{}, maxReaders)}
	for range maxReaders {
		p.turns <- struct{}{}
	}
	return p
}

// take waits for a connection that can read. The caller gives it back.
func (p *pool) take(ctx context.Context) (*conn, error) {
	wait := time.NewTicker(lockWait)
	defer wait.Stop()
	for waits := true; waits; {
		if p.stuck.Load() > 0 {
			return nil, errLocked
		}
		select {
		case <-p.turns:
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
		c, err := p.probe()
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

// probe takes an idle connection, or opens one, and reads something, which waits for locks.
func (p *pool) probe() (c *conn, err error) {
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		c, p.idle = p.idle[last], p.idle[:last]
	}
	p.mu.Unlock()
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
	switch {
	case c == nil:
	case !c.AutoCommit(): // its transaction cannot be ended
		_ = c.Close()
	default:
		p.mu.Lock()
		p.idle = append(p.idle, c)
		p.mu.Unlock()
	}
	p.turns <- struct{}{}
}

// close waits until all connections are given back, and closes them.
func (p *pool) close() error {
	for range maxReaders {
		<-p.turns
	}
	var err error
	for _, c := range p.idle {
		err = errors.Join(err, c.Close())
	}
	return err
}
