package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// pruneRequests deletes all that refers to requests, and them, until a key. Each table has
// them one after the other, or one bucket after the other, so that no record is read.
var pruneRequests = []string{
	"DELETE FROM labels WHERE bucket <= ?1 >> 43 AND n <= ?1",
	"DELETE FROM scores WHERE name IN (SELECT id FROM names WHERE kind = '" + scoreKind + "') AND n <= ?1",
	"DELETE FROM details WHERE n <= ?1",
	"DELETE FROM requests WHERE n <= ?1",
	"DELETE FROM span_keys WHERE bucket < ?1 >> 43",
	"DELETE FROM buckets WHERE bucket < ?1 >> 43",
}

// erasePages is how many free pages one call of Erase takes from the file, 8 MiB: it bounds
// the time that the call keeps batches waiting.
const erasePages = 1000

// Erase gives free pages back to the file system, if the file was made with pointers to its
// pages. Then it empties the write-ahead log, which has pages as they were before texts in
// them were deleted. It fails while a long query reads the log. Copies that SQLite left in other
// pages when it moved rows stay until EraseUnused.
func (b *Backend) Erase(ctx context.Context) (more bool, err error) {
	err = b.withWriter(func(w *writer) error {
		taken := 0 // each row is a page
		vacuum := fmt.Sprintf("PRAGMA incremental_vacuum(%d)", erasePages)
		if err := w.c.query(ctx, vacuum, nil, func([]driver.Value) error { taken++; return nil }); err != nil {
			return err
		}
		if more = taken >= erasePages; more {
			return nil
		}
		return w.emptyLog(ctx)
	})
	if err != nil {
		return false, fmt.Errorf("erasing what was deleted from %s: %w", b.path, explain(err))
	}
	return more, nil
}

var errLogRead = errors.New("queries still read the write-ahead log")

// emptyLog writes what the write-ahead log has to the file. It waits a second for queries that read it.
func (w *writer) emptyLog(ctx context.Context) error {
	position, err := w.c.position(ctx, w.log.journal)
	if err != nil {
		return err
	}
	busy, err := w.c.integer(ctx, "PRAGMA wal_checkpoint(TRUNCATE)")
	if err == nil && busy != 0 {
		err = errLogRead
	}
	if err == nil {
		w.log.merged = position // also if somebody has written over the file since
	}
	return err
}

// prune also returns the files of columns that nothing needs any more.
func (w *writer) prune(ctx context.Context, before storage.Timestamp) (more bool, files []string, err error) {
	pruned := w.pruned
	err = w.transaction(ctx, func() error {
		w.changed, err = w.c.integers(ctx, "SELECT n FROM requests WHERE n < ? ORDER BY n LIMIT ?", columnar.FirstKey(before), int64(w.bounds.pruneRows))
		if err != nil {
			return err
		}
		if old := len(w.changed); old > 0 {
			until := w.changed[old-1]
			w.bucketKnown = false
			if files, err = w.pruneColumns(ctx, until); err != nil {
				return err
			}
			for _, statement := range pruneRequests {
				if _, err := w.c.exec(statement, until); err != nil {
					return err
				}
			}
			if more = old == w.bounds.pruneRows; more {
				return nil
			}
		}
		tags, err := w.delete("DELETE FROM session_tags WHERE (org, session) IN (SELECT org, session FROM session_tags WHERE set_at < ? LIMIT ?)", before)
		if err != nil {
			return err
		}
		names, err := w.pruneNames(before - seenStep)
		more = names || tags == int64(w.bounds.pruneRows)
		return err
	})
	if err != nil {
		w.pruned, w.pruneFrom, w.unused = pruned, 0, nil
		w.names.forgetOldest() // some may have been rolled back
		return false, nil, err
	}
	return more, files, nil
}

// neverPruned is so long ago that names are looked at first thing.
const neverPruned = math.MinInt64 / 2

// delete runs a statement that deletes at most bounds.pruneRows rows from before a time. The
// statement's parameters are that time, others, and the bound.
func (w *writer) delete(statement string, before storage.Timestamp, others ...driver.Value) (deleted int64, err error) {
	result, err := w.c.exec(statement, append(append([]driver.Value{int64(before)}, others...), int64(w.bounds.pruneRows))...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
