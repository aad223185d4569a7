package cache

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/libsqlite"
)

// FileName is the name of the table's file in the journal's directory. Backups do not have it:
// without the file, the cache only misses.
const FileName = "cache.db"

const schema = `
CREATE TABLE IF NOT EXISTS answers (
	key     BLOB NOT NULL,
	bucket  INTEGER NOT NULL,
	record  BLOB NOT NULL,    -- id of the record that has the answer
	sum     BLOB NOT NULL,    -- keyed hash of the answer
	usage   INTEGER NOT NULL, -- 1 if the usage that the gateway asked for is taken out of the stream
	saved   INTEGER NOT NULL, -- milliseconds
	expires INTEGER NOT NULL, -- milliseconds
	PRIMARY KEY (key, bucket)
) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS answers_expires ON answers (expires);
CREATE INDEX IF NOT EXISTS answers_saved ON answers (saved);
PRAGMA user_version = 1;`

const (
	// maxEntries bounds the table to about 20 MB. The oldest make room.
	maxEntries = 100_000
	// trimEvery is the number of new entries between two calls of trim.
	trimEvery = 256
	// maxKnown is of how many keys the entries stay in memory.
	maxKnown = 4096
)

// entry says which record has an answer.
type entry struct {
	bucket     int
	record     uuid.UUID
	sum        [sha256.Size]byte
	hidesUsage bool
	saved      time.Time
	expires    time.Time
}

// table maps the key of a request to the records that have an answer to it.
type table struct {
	db                  *sql.DB
	find, save, discard *sql.Stmt

	mu sync.Mutex
	// known are the entries of keys that were asked for lately: hits do not read the file again.
	known  map[Key][]entry // guarded by mu
	writes int             // to the file since it was opened; guarded by mu
}

// open opens the table of a directory. It replaces a corrupt one by an empty one.
func open(dir string) (*table, error) {
	path := filepath.Join(dir, FileName)
	t, err := openFile(path)
	if code := libsqlite.Code(err); code != libsqlite.Corrupt && code != libsqlite.NotADB {
		return t, err
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return openFile(path)
}

func openFile(path string) (t *table, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	db, err := sql.Open(libsqlite.Name, libsqlite.URI(path, url.Values{"_journal_mode": {"WAL"}, "_synchronous": {"OFF"}, "_busy_timeout": {"5000"}}))
	if err != nil {
		return nil, err
	}
	t = &table{db: db}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
		}
	}()
	if _, err = db.Exec(schema); err != nil {
		return nil, err
	}
	for statement, text := range map[**sql.Stmt]string{
		&t.find:    "SELECT bucket, record, sum, usage, saved, expires FROM answers WHERE key = ? ORDER BY bucket",
		&t.save:    "INSERT OR REPLACE INTO answers (key, bucket, record, sum, usage, saved, expires) VALUES (?, ?, ?, ?, ?, ?, ?)",
		&t.discard: "DELETE FROM answers WHERE key = ? AND bucket = ? AND record = ?",
	} {
		if *statement, err = db.Prepare(text); err != nil { //nolint:sqlclosecheck // closes with db
			return nil, err
		}
	}
	return t, nil
}

// entries returns what the table has for a key.
func (t *table) entries(ctx context.Context, k Key, now time.Time) (live []entry, err error) {
	t.mu.Lock()
	found, known := t.known[k]
	writes := t.writes
	t.mu.Unlock()
	if !known {
		if found, err = t.read(ctx, k); err != nil || len(found) == 0 {
			return nil, err
		}
		t.remember(k, found, writes)
	}
	for i := range found {
		if found[i].expires.After(now) {
			live = append(live, found[i])
		}
	}
	return live, nil
}

// knows reports whether entries of a key are in memory, which may have expired.
func (t *table) knows(k Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.known[k]
	return known
}

// remember keeps in memory what was read of a key, unless the file was written meanwhile. If there
// is too much, it forgets the rest.
func (t *table) remember(k Key, found []entry, writes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writes != writes {
		return
	}
	if t.known == nil || len(t.known) >= maxKnown {
		t.known = make(map[Key][]entry)
	}
	t.known[k] = found
}

// forget forgets what was read of a key whose entries have changed.
func (t *table) forget(k Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.writes++
	delete(t.known, k)
}

func (t *table) read(ctx context.Context, k Key) (found []entry, err error) {
	rows, err := t.find.QueryContext(ctx, k[:])
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var e entry
		var record, sum []byte
		var saved, expires int64
		if err := rows.Scan(&e.bucket, &record, &sum, &e.hidesUsage, &saved, &expires); err != nil {
			return nil, err
		}
		if len(record) != len(e.record) || len(sum) != len(e.sum) {
			continue
		}
		copy(e.record[:], record)
		copy(e.sum[:], sum)
		e.saved, e.expires = time.UnixMilli(saved), time.UnixMilli(expires)
		found = append(found, e)
	}
	return found, rows.Err()
}

// add puts an entry in the table.
func (t *table) add(ctx context.Context, k Key, e entry) error {
	defer t.forget(k)
	_, err := t.save.ExecContext(ctx, k[:], e.bucket, e.record[:], e.sum[:], e.hidesUsage, e.saved.UnixMilli(), e.expires.UnixMilli())
	return err
}

// remove takes out an entry whose answer is gone.
func (t *table) remove(ctx context.Context, k Key, e entry) error {
	defer t.forget(k)
	_, err := t.discard.ExecContext(ctx, k[:], e.bucket, e.record[:])
	return err
}

// trim removes what has expired, and the oldest of too many. Their answers may still be given from
// memory.
func (t *table) trim(ctx context.Context, now time.Time, maxAnswers int) error {
	_, err := t.db.ExecContext(ctx, "DELETE FROM answers WHERE expires <= ?", now.UnixMilli())
	if err == nil {
		_, err = t.db.ExecContext(ctx, `DELETE FROM answers WHERE saved <= (SELECT saved FROM answers ORDER BY saved DESC LIMIT 1 OFFSET ?)`, maxAnswers)
	}
	return err
}

func (t *table) close() error { return t.db.Close() }
