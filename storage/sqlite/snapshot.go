package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/weirhq/weir/storage"
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
	if err := create(path); err != nil {
		return err
	}
	// A copy that is cut short is thrown away: until it is whole, nothing of it needs to
	// be on the disk.
	to, err := openNew(path, "PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF")
	if err != nil {
		return err
	}
	if err := errors.Join(copyPages(ctx, to, s.c), to.Close()); err != nil {
		return err
	}
	to, err = openNew(path, "PRAGMA journal_mode = DELETE")
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
