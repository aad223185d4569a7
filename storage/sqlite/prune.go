package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/weirhq/weir/storage"
)

// pruneChunk bounds the records that one call of Prune deletes, and so the time
// that it keeps batches waiting.
const pruneChunk = 2000

func (w *writer) prune(ctx context.Context, before storage.Timestamp) (more bool, err error) {
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
		for _, r := range rows {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := w.remove(r); err != nil {
				return err
			}
			w.changes = append(w.changes, change{old: r})
		}
		if more = len(old) == pruneChunk; more {
			return nil
		}
		_, err = w.c.exec("DELETE FROM session_tags WHERE set_at < ?", int64(before))
		return errors.Join(err, w.names.sweep(before))
	})
	return more && err == nil, err
}
