package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/weirhq/weir/storage"
)

// pruneChunk bounds what one call of Prune deletes of each table, and so the time
// that it keeps batches waiting. Tests make it smaller.
var pruneChunk = 2000

// prune also answers the files of columns that nothing needs any more.
func (w *writer) prune(ctx context.Context, before storage.Timestamp) (more bool, files []string, err error) {
	err = w.transaction(ctx, func() error {
		var old []int64
		err := w.c.query(ctx, "SELECT n FROM requests WHERE n < ? ORDER BY n LIMIT ?",
			[]driver.Value{firstN(before), int64(pruneChunk)}, func(row []driver.Value) error {
				old = append(old, row[0].(int64))
				return nil
			})
		if err != nil {
			return err
		}
		rows, err := w.rows.load(ctx, old)
		if err != nil {
			return err
		}
		if len(old) > 0 {
			if files, err = w.pruneColumns(ctx, old[len(old)-1]); err != nil {
				return err
			}
		}
		for _, r := range rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := w.remove(r); err != nil {
				return err
			}
		}
		if more = len(old) == pruneChunk; more {
			return nil
		}
		tags, err := w.delete("DELETE FROM session_tags WHERE (org, session) IN (SELECT org, session FROM session_tags WHERE set_at < ? LIMIT ?)", before)
		if err != nil {
			return err
		}
		// The names that only records before used, which are gone.
		names, err := w.delete("DELETE FROM names WHERE id IN (SELECT id FROM names WHERE seen < ? LIMIT ?)", before-seenStep)
		if names > 0 {
			w.names.known.clear()
		}
		more = max(tags, names) == int64(pruneChunk)
		return err
	})
	if err != nil {
		return false, nil, err
	}
	return more, files, nil
}

// delete deletes what is older than a time, as many rows at most as a chunk has.
func (w *writer) delete(statement string, before storage.Timestamp) (deleted int64, err error) {
	result, err := w.c.exec(statement, int64(before), int64(pruneChunk))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
