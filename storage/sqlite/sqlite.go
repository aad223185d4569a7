// Package sqlite keeps records in one SQLite database file, in WAL mode: one
// connection writes, others read meanwhile. Bodies are kept elsewhere; the database
// has references to them.
//
// The database is made to be read by people as well:
//
//	$ sqlite3 -readonly weir.db
//	sqlite> SELECT created_at, model, status, latency_ms, cost_usd FROM request_log
//	   ...> ORDER BY n DESC LIMIT 10;
//
// The view request_log has one line a request, with names, times and prices in
// plain text. The tables below it refer to texts by number: requests has the columns
// that filters compare, details has the other columns, and names has the texts. migrations/ has the schema
// with a comment for every column.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// Backend is a storage.Backend on one database file.
type Backend struct {
	path string
	bounds
	// settled is the time without new requests after which files of columns with few changes
	// are written anew. Until then queries read the changes from the database.
	settled  time.Duration
	columns  *columnar.Engine
	contents storage.Contents
	host     *storage.Host // of the last Open that succeeded; the host alone uses it

	// mu guards the fields below. Open and Close lock it, all other calls hold it for reading.
	mu      sync.RWMutex
	writer  *writer
	readers *pool
	names   *nameReader
	tails   *tailCache
	files   *columnFiles
	closing context.Context
	close   context.CancelFunc
	// damaged tells the host of damage. It is called once, when damageReported becomes true.
	damaged        func(found string)
	damageReported atomic.Bool
	// older is true while the file is an older copy that somebody has written over it.
	older atomic.Bool
}

// bounds are limits of what a Backend does or keeps in memory at once.
type bounds struct {
	// tailRows bounds the newest requests that analytics keep in memory. A chunk goes to
	// a file once there are two chunks, so two chunks must be within the limit.
	tailRows int
	// listedNames bounds the ids of names that a statement lists. Up to fewNames, the statement
	// is the one for short lists.
	listedNames, fewNames int
	// pruneRows bounds the rows of each table that a call of Prune deletes, and so the time for
	// which the call keeps batches waiting: some 30 ms.
	pruneRows int
	// sortedRequests bounds the requests that a query sorts by properties.
	sortedRequests int
	// nameBlock is the number of consecutive ids of names that a step of pruning checks.
	nameBlock int64
	// zeroedPages bounds the pages of which a step of EraseUnused overwrites the free parts, and
	// so the time for which it keeps batches waiting.
	zeroedPages int64
	// vacuumBytes bounds the database of Weir 0.1.0 that is written anew, and so the time for which
	// that keeps batches waiting.
	vacuumBytes int64
}

var standardBounds = bounds{tailRows: 512 << 10, listedNames: 50_000, fewNames: 20, pruneRows: 4000, sortedRequests: storage.MaxPropertySort, nameBlock: 4 << 10, zeroedPages: 4000, vacuumBytes: 4 << 30}

// New returns a backend on the database file at path, not yet open.
func New(path string) *Backend {
	return &Backend{path: path, bounds: standardBounds, settled: 5 * time.Second, columns: columnar.New(path + columnDirectory)}
}

var errClosed = fmt.Errorf("the database is not open: %w", storage.ErrUnavailable)

// Open opens the database. It creates the file with mode 0600, and its directory
// with 0700, when there are none.
func (b *Backend) Open(ctx context.Context, h *storage.Host) (storage.Position, error) {
	p, err := b.open(ctx, h)
	if err != nil {
		return p, fmt.Errorf("opening the database %s: %w", b.path, explain(err))
	}
	b.host = h
	return p, nil
}

func (b *Backend) open(ctx context.Context, h *storage.Host) (p storage.Position, err error) {
	file, err := openFile(b.path)
	if err != nil {
		return p, err
	}
	dropped, err := dropOtherLog(ctx, b.path, h.Journal)
	if dropped && h.Damaged != nil {
		h.Damaged(fmt.Sprintf("is older than it was: %v. The log was removed, and the journal fills the file again", errOtherLog))
	}
	if err != nil {
		return p, errors.Join(err, file.Close())
	}
	c, err := openWriter(b.path)
	if err != nil {
		return p, errors.Join(err, file.Close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close(), file.Close())
		}
	}()
	if err := c.migrate(ctx); err != nil {
		return p, err
	}
	if p, err = c.position(ctx, h.Journal); errors.Is(err, errDamaged) {
		b.reportDamage(h.Damaged, err)
		p, err = h.Position, nil
	}
	if err != nil {
		return p, err
	}
	k := newTailCache(b.columns, b.tailRows)
	w, err := newWriter(ctx, c, k, b.bounds)
	if err != nil {
		return p, err
	}
	w.file, w.log.journal = file, h.Journal
	if err := w.checkFile(); err != nil {
		return p, err
	}
	w.log.salt, _ = readSalt(b.path)
	files, err := b.openColumnFiles(ctx, w)
	if err != nil {
		return p, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.contents, b.damaged = h.Contents, h.Damaged
	b.writer = w
	b.older.Store(false)
	b.names = newNameReader()
	b.tails, b.files = k, files
	b.readers = newPool(b.path)
	b.closing, b.close = context.WithCancel(context.Background())
	go files.run(b.closing)
	files.wakeUp()
	return p, nil
}

// openFile opens a file, and creates it if it is not there. To close the file of a database that this process
// has open releases SQLite's locks: https://www.sqlite.org/howtocorrupt.html#_posix_advisory_locks_canceled_by_a_separate_thread_doing_close_
func openFile(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
}

// Write writes a batch and its position in one transaction.
func (b *Backend) Write(ctx context.Context, batch *storage.Batch) error {
	err := b.withWriter(func(w *writer) error {
		err := w.write(ctx, batch)
		if err == nil {
			b.files.count(len(batch.Records)) // not earlier: run would not see the batch
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("writing a batch to %s: %w", b.path, rejected(explain(err)))
	}
	return nil
}

// reportDamage tells the host of the first error that comes from damage.
func (b *Backend) reportDamage(damaged func(found string), err error) {
	if err = explain(err); errors.Is(err, errDamaged) && damaged != nil && !b.damageReported.Swap(true) {
		damaged(fmt.Sprintf("cannot be read everywhere: %v", err))
	}
}

// Limits leaves all limits to the host.
func (b *Backend) Limits() storage.Limits { return storage.Limits{} }

// Prune deletes records that were created before the given time, at most a few thousand
// a call. When none is left, it also deletes, once a day, the names that nothing uses any
// more. The file keeps its size, and later records fill it.
func (b *Backend) Prune(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	return b.pruneWith(func(w *writer) (bool, error) {
		more, files, err := w.prune(ctx, before)
		if err == nil {
			b.files.remove(files)
		}
		return more, err
	})
}

// pruneWith is withWriter for what deletes old rows. Its errors say so.
func (b *Backend) pruneWith(do func(*writer) (bool, error)) (more bool, err error) {
	err = b.withWriter(func(w *writer) error {
		more, err = do(w)
		return err
	})
	if err != nil {
		return false, fmt.Errorf("deleting what is old from %s: %w", b.path, explain(err))
	}
	return more, nil
}

// withWriter calls do with the writer, which no other call uses meanwhile, unless an older copy was
// written over the file.
func (b *Backend) withWriter(do func(*writer) error) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.writer == nil {
		return errClosed
	}
	b.writer.mu.Lock()
	err := b.writer.guard(do)
	b.older.Store(errors.Is(err, errOlderFile))
	b.writer.mu.Unlock()
	if errors.Is(err, errOlderFile) && b.damaged != nil {
		b.damaged("is older than it was: " + errOlderFile.Error())
	}
	b.reportDamage(b.damaged, err)
	return err
}

// Requests returns one page of records.
func (b *Backend) Requests(ctx context.Context, q *storage.RequestQuery) (page []*storage.Record, err error) {
	err = b.withReader(ctx, func(ctx context.Context, r reader) error {
		page, err = requests(ctx, r, b.contents, q)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("querying %s: %w", b.path, explain(err))
	}
	return page, nil
}

// Request returns one record, or storage.ErrNotFound.
func (b *Backend) Request(ctx context.Context, key storage.RecordKey) (*storage.Record, error) {
	return b.record(ctx, "record "+key.ID.String(), func(ctx context.Context, r reader) (*row, error) { return r.byKey(ctx, key) })
}

// Response implements storage.ResponseFinder.
func (b *Backend) Response(ctx context.Context, org, id string) (*storage.Record, error) {
	return b.record(ctx, "response "+id, func(ctx context.Context, r reader) (*row, error) { return r.byResponseID(ctx, org, id) })
}

func (b *Backend) record(ctx context.Context, what string, find func(context.Context, reader) (*row, error)) (*storage.Record, error) {
	var found *row
	err := b.withReader(ctx, func(ctx context.Context, r reader) (err error) {
		found, err = find(ctx, r)
		return err
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil, storage.ErrNotFound
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s from %s: %w", what, b.path, explain(err))
	}
	return &found.record, nil
}

// withReader calls do with one snapshot of the database. Close cancels the context of do.
func (b *Backend) withReader(ctx context.Context, do func(context.Context, reader) error) error {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.writer == nil {
		return errClosed
	}
	if b.older.Load() {
		return errOlderFile
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.closing, func() { cancel(errClosed) })()
	c, err := b.readers.take(ctx)
	if err != nil {
		return err
	}
	defer b.readers.give(c)
	err = c.transaction(ctx, func() error { return do(ctx, reader{c, b.names, b.bounds}) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.reportDamage(b.damaged, err)
	return err
}

// Close cancels running queries and closes the database.
func (b *Backend) Close() error {
	if files := b.interrupt(); files != nil {
		<-files.done
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.writer == nil {
		return nil
	}
	err := b.closeConnections()
	b.tails.close()
	b.readers, b.writer, b.tails, b.files = nil, nil, nil, nil
	return err
}

// closeConnections closes the writer last, so that SQLite merges the write-ahead log, unless that would hide
// that the file is an older copy: then a connection that cannot write closes last.
func (b *Backend) closeConnections() error {
	var err error
	if errors.Is(b.writer.checkFile(), errOlderFile) {
		var last *conn
		if last, err = openReader(b.path); err == nil {
			_, err = last.integer(context.Background(), "SELECT count(*) FROM sqlite_schema") // which opens the log
			defer last.Close()
		}
	}
	return errors.Join(err, b.readers.close(), b.writer.c.Close(), b.writer.file.Close())
}

// interrupt cancels running queries and returns the writer of column files, nil if the database
// is not open.
func (b *Backend) interrupt() *columnFiles {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.writer != nil {
		b.close()
	}
	return b.files
}

var (
	_ storage.Backend      = (*Backend)(nil)
	_ storage.Eraser       = (*Backend)(nil)
	_ storage.RecordEraser = (*Backend)(nil)
	_ storage.Verifier     = (*Backend)(nil)
	_ storage.FileRestorer = (*Backend)(nil)
)
