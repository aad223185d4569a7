package sqlite

import (
	"context"
	"database/sql/driver"
	"math"

	"github.com/weirhq/weir/storage"
)

// pruneChunk bounds what one call of Prune deletes of each table, and so the time
// that it keeps batches waiting: some 30 ms. Tests make it smaller.
var pruneChunk = 4000

// pruneRequests deletes all that refers to requests, and them, until a key. Each table has
// them one behind the other, or one bucket after the other, so that no record is read.
var pruneRequests = []string{
	"DELETE FROM labels WHERE bucket <= ?1 >> 43 AND n <= ?1",
	"DELETE FROM scores WHERE name IN (SELECT id FROM names WHERE kind = '" + scoreKind + "') AND n <= ?1",
	"DELETE FROM details WHERE n <= ?1",
	"DELETE FROM requests WHERE n <= ?1",
	"DELETE FROM buckets WHERE bucket < ?1 >> 43",
}

// prune also answers the files of columns that nothing needs any more.
func (w *writer) prune(ctx context.Context, before storage.Timestamp) (more bool, files []string, err error) {
	pruned, from := w.pruned, w.pruneFrom
	err = w.transaction(ctx, func() error {
		err := w.c.query(ctx, "SELECT n FROM requests WHERE n < ? ORDER BY n LIMIT ?",
			[]driver.Value{firstN(before), int64(pruneChunk)}, func(row []driver.Value) error {
				w.changed = append(w.changed, row[0].(int64))
				return nil
			})
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
			if more = old == pruneChunk; more {
				return nil
			}
		}
		tags, err := w.delete("DELETE FROM session_tags WHERE (org, session) IN (SELECT org, session FROM session_tags WHERE set_at < ? LIMIT ?)", before)
		if err != nil {
			return err
		}
		names, err := w.pruneNames(before - seenStep)
		more = names || tags == int64(pruneChunk)
		return err
	})
	if err != nil {
		w.pruned, w.pruneFrom = pruned, from
		w.names.forgetOldest() // some may have been rolled back
		return false, nil, err
	}
	return more, files, nil
}

// nameBlock is the number of ids of names that are looked at or not, together. Tests make
// it smaller.
var nameBlock int64 = 4 << 10

// blocksAtOnce bounds the blocks of a step: most names are in use, and a transaction for
// each block costs more than to look at it.
const blocksAtOnce = 16

// pruneNames deletes of the next names those that no record uses which was created since,
// once a day. An index of when they were seen would cost each batch more than to look at
// the blocks in which some name was not seen since: those of the oldest ids.
func (w *writer) pruneNames(since storage.Timestamp) (more bool, err error) {
	if since < w.pruned+seenStep {
		return false, nil
	}
	blocks, deleted := w.names.oldest, int64(0)
	for looks := 0; w.pruneFrom < len(blocks); {
		if blocks[w.pruneFrom] >= since {
			w.pruneFrom++
			continue
		}
		if looks++; looks > blocksAtOnce || deleted == int64(pruneChunk) {
			return true, nil
		}
		from, until := int64(w.pruneFrom)*nameBlock, int64(w.pruneFrom+1)*nameBlock
		oldest, err := w.c.integer(context.Background(), "SELECT coalesce(min(seen), ?) FROM names WHERE id >= ? AND id < ?", int64(math.MaxInt64), from, until)
		if err != nil {
			return false, err
		}
		if blocks[w.pruneFrom] = storage.Timestamp(oldest); blocks[w.pruneFrom] >= since {
			continue
		}
		result, err := w.c.exec("DELETE FROM names WHERE id IN (SELECT id FROM names WHERE id >= ? AND id < ? AND seen < ? LIMIT ?)",
			from, until, int64(since), int64(pruneChunk)-deleted)
		if err != nil {
			return false, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return false, err
		}
		deleted += n
		w.names.known.clear()
	}
	w.pruneFrom, w.pruned = 0, since
	return false, nil
}

// neverPruned is so long ago that names are looked at first thing.
const neverPruned = math.MinInt64 / 2

// delete deletes what is older than a time, as many rows at most as a chunk has.
func (w *writer) delete(statement string, before storage.Timestamp) (deleted int64, err error) {
	result, err := w.c.exec(statement, int64(before), int64(pruneChunk))
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
