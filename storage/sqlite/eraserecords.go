package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/disk"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// EraseRecords implements storage.RecordEraser.
func (b *Backend) EraseRecords(ctx context.Context, org string, ids []uuid.UUID, scope storage.ErasureScope) error {
	err := b.withWriter(func(w *writer) error {
		if _, err := w.c.exec(synchronousFull); err != nil {
			return err
		}
		defer func() { _, _ = w.c.exec(synchronousNormal) }() // failing, it is but slower
		return w.transaction(ctx, func() error {
			for _, id := range ids {
				if err := w.erase(ctx, storage.RecordKey{Org: org, ID: id}, scope); err != nil {
					return fmt.Errorf("record %s: %w", id, err)
				}
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("erasing records from %s: %w", b.path, explain(err))
	}
	return nil
}

// erase erases a record, and the tag of its session if no other record has the session. The journal
// has its content.
func (w *writer) erase(ctx context.Context, key storage.RecordKey, scope storage.ErasureScope) error {
	if err := w.eraseItems(ctx, key); err != nil || scope == storage.EraseContent {
		return err
	}
	old, err := w.rows.byKey(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if scope == storage.EraseRecord {
		err = w.remove(old)
	} else {
		err = w.replace(old, &row{record: *old.record.Erased(scope), n: old.n, annotatedAt: old.annotatedAt})
	}
	if err != nil {
		return err
	}
	_, err = w.c.exec("DELETE FROM span_keys WHERE bucket = ? AND org = ? AND request = ?", bucketOf(columnar.FirstKey(old.record.CreatedAt)), key.Org, key.ID[:])
	if err != nil || old.record.SessionID == "" {
		return err
	}
	org, err := w.rows.name(ctx, "org", key.Org)
	if err != nil {
		return err
	}
	session, err := w.rows.name(ctx, "session", old.record.SessionID)
	if err != nil {
		return err
	}
	_, err = w.c.exec("DELETE FROM session_tags WHERE org = ? AND session = ? AND NOT EXISTS (SELECT 1 FROM requests WHERE session = ? AND org = ?)",
		key.Org, old.record.SessionID, int64(session), int64(org))
	return err
}

// EraseUnused implements storage.RecordEraser: it writes the files of columns anew that have
// requests that are gone, deletes the names that no request has, and overwrites the copies of
// deleted rows that SQLite leaves in free parts of pages.
func (b *Backend) EraseUnused(ctx context.Context) error {
	b.mu.RLock()
	files := b.files
	b.mu.RUnlock()
	if files == nil {
		return errClosed
	}
	err := files.rewriteChanged(ctx)
	if err == nil {
		err = b.eraseNames(ctx)
	}
	if err == nil {
		err = b.zeroFree(ctx)
	}
	if err != nil {
		return fmt.Errorf("erasing what is unused from %s: %w", b.path, explain(err))
	}
	return nil
}

// eraseNames deletes the names that no request has: names that a batch uses meanwhile stay.
func (b *Backend) eraseNames(ctx context.Context) error {
	var next int64
	err := b.withWriter(func(w *writer) error {
		next, w.names.used = w.names.next, make(map[int64]struct{})
		return nil
	})
	if err != nil {
		return err
	}
	defer func() { _ = b.withWriter(func(w *writer) error { w.names.used = nil; return nil }) }()
	var unused []uint32
	if err := b.withReader(ctx, func(ctx context.Context, r reader) (err error) {
		unused, err = r.unusedNames(ctx, next)
		return err
	}); err != nil {
		return err
	}
	for more := true; more; {
		err := b.withWriter(func(w *writer) error {
			return w.transaction(ctx, func() error {
				var ids []uint32
				for len(unused) > 0 && len(ids) < w.bounds.pruneRows {
					if _, used := w.names.used[int64(unused[0])]; !used {
						ids = append(ids, unused[0])
					}
					unused = unused[1:]
				}
				w.names.cached.clear()
				_, err := w.c.exec("DELETE FROM names WHERE id IN (SELECT value FROM json_each(?))", compactJSON(ids))
				return err
			})
		})
		if err != nil {
			return err
		}
		more = len(unused) > 0
	}
	return nil
}

// vacuumReserve is how many bytes stay free on the disk while the database is written anew.
const vacuumReserve = 1 << 30

// vacuum writes the database anew. Batches wait meanwhile, some seconds for each gigabyte, and the
// disk has the database three times: its temporary file is not in memory. The error is
// storage.ErrCopiesRemain if the database is too large for that, or the disk is.
func (w *writer) vacuum(ctx context.Context) error {
	info, err := w.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	free, _, err := disk.Space(w.file.Name())
	isFull := free < uint64(2*size+vacuumReserve) && !errors.Is(err, errors.ErrUnsupported)
	if size > w.bounds.vacuumBytes || isFull {
		return storage.ErrCopiesRemain
	}
	if _, err := w.c.exec("PRAGMA temp_store = FILE"); err != nil {
		return err
	}
	_, err = w.c.ExecContext(ctx, "VACUUM", nil)
	_, reset := w.c.exec(temporaryInMemory)
	return errors.Join(err, reset)
}

// unusedNames lists the names with ids below next that no request refers to.
func (r reader) unusedNames(ctx context.Context, next int64) (unused []uint32, err error) {
	used := make([]uint64, next/64+1)
	mark := func(values []driver.Value) error {
		for _, v := range values {
			if id, ok := v.(int64); ok && id < next {
				used[id/64] |= 1 << (id % 64)
			}
		}
		return nil
	}
	var named []column
	for _, c := range requestColumns {
		if c.names != "" {
			named = append(named, c)
		}
	}
	for _, query := range []string{
		"SELECT " + columnList(named, "") + " FROM requests",
		"SELECT label FROM labels",
		"SELECT DISTINCT name FROM scores",
	} {
		if err := r.c.query(ctx, query, nil, mark); err != nil {
			return nil, err
		}
	}
	err = r.c.query(ctx, "SELECT id FROM names WHERE id < ?", []driver.Value{next}, func(values []driver.Value) error {
		if id := values[0].(int64); used[id/64]&(1<<(id%64)) == 0 {
			unused = append(unused, uint32(id))
		}
		return nil
	})
	return unused, err
}
