package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/libsqlite"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// snapshot is a connection within a transaction that reads: what it sees does not
// change, and in WAL mode it keeps nobody from writing.
type snapshot struct {
	c    *conn
	tx   driver.Tx
	path string
}

// Snapshot implements storage.Snapshotter.
func (b *Backend) Snapshot(ctx context.Context) (storage.Snapshot, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.writer == nil {
		return nil, errClosed
	}
	if b.older.Load() {
		return nil, errOlderFile
	}
	s, err := openSnapshot(ctx, b.path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", b.path, explain(err))
	}
	return s, nil
}

func openSnapshot(ctx context.Context, path string) (*snapshot, error) {
	c, err := openReader(path)
	if err != nil {
		return nil, err
	}
	tx, err := c.BeginTx(ctx, driver.TxOptions{})
	if err == nil {
		_, err = c.integer(ctx, "SELECT count(*) FROM journals") // the transaction begins with what it reads
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &snapshot{c, tx, path}, nil
}

// CopyTo implements storage.Snapshot. The copy has the name of the database, and is no
// longer in WAL mode: it is one file, which can be read where nothing can be written.
func (s *snapshot) CopyTo(ctx context.Context, dir string) error {
	path := filepath.Join(dir, filepath.Base(s.path))
	if err := s.copyTo(ctx, path); err != nil {
		return fmt.Errorf("copying %s to %s: %w", s.path, path, explain(err))
	}
	return nil
}

func (s *snapshot) copyTo(ctx context.Context, path string) error {
	file, err := openFile(path)
	if err == nil {
		err = file.Close()
	}
	if err != nil {
		return err
	}
	if err := libsqlite.Copy(ctx, s.c.Conn, path); err != nil {
		return err
	}
	to, err := openNew(path, "PRAGMA journal_mode = DELETE")
	if err != nil {
		return err
	}
	return to.Close()
}

// Close implements storage.Snapshot.
func (s *snapshot) Close() error { return errors.Join(rollback(s.c, s.tx), s.c.Close()) }

var (
	_ storage.Snapshotter = (*Backend)(nil)
	_ storage.Snapshot    = (*snapshot)(nil)
)

// CheckFile implements storage.Checker.
func (*Storage) CheckFile(ctx context.Context, path string, journal uuid.UUID, match func(*storage.Record)) (p storage.Position, err error) {
	if _, err := os.Stat(path); err != nil {
		return p, err
	}
	c, err := open(path, libsqlite.ReadOnly(path), "PRAGMA query_only = ON", "PRAGMA temp_store = MEMORY")
	if err == nil {
		if err = c.compareLog(ctx, path, journal); err == nil {
			p, err = checkAll(ctx, c, journal, match)
		}
		err = errors.Join(err, c.Close())
	}
	if err != nil {
		return p, fmt.Errorf("%s: %w", path, explain(err))
	}
	return p, nil
}

func checkAll(ctx context.Context, c *conn, journal uuid.UUID, match func(*storage.Record)) (p storage.Position, err error) {
	v := verification{reader: reader{c, newNameReader(), standardBounds}}
	problems, err := v.verify(ctx)
	if err == nil && problems != nil {
		err = errors.New(strings.Join(problems, "; "))
	}
	if err != nil {
		return p, err
	}
	err = c.query(ctx, `SELECT r.request_id, r.n, d.content_segment, d.content_ordinal, o.name FROM requests r
		JOIN names o ON o.id = r.org LEFT JOIN details d ON d.n = r.n`, nil, func(row []driver.Value) error {
		r := &storage.Record{Org: row[4].(string), CreatedAt: columnar.CreatedAt(row[1].(int64))}
		copy(r.ID[:], row[0].([]byte))
		if segment, there := row[2].(int64); there {
			ordinal, _ := row[3].(int64)
			r.Content = storage.ContentRef{Segment: uint64(segment), Ordinal: uint32(ordinal)}
		}
		match(r)
		return nil
	})
	if err != nil {
		return p, err
	}
	return c.position(ctx, journal)
}

// position is how far a journal has been written to the database.
func (c *conn) position(ctx context.Context, journal uuid.UUID) (p storage.Position, err error) {
	const query = "SELECT * FROM journals WHERE journal = ?" // the sum, which comes last, is not in all databases
	err = c.query(ctx, query, []driver.Value{journal[:]}, func(row []driver.Value) error {
		if err := compareRow(journalColumns, row); err != nil {
			return fmt.Errorf("the position of the journal: %w", err)
		}
		p = storage.Position{Segment: uint64(row[1].(int64)), Ordinal: uint32(row[2].(int64))}
		return nil
	})
	return p, err
}

var _ storage.Checker = (*Storage)(nil)
