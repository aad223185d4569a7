// Package embedded keeps the control objects of one process in an SQLite file. A change is on
// the disk when it returns, whole or not at all.
package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/libsqlite"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/journal"
)

// FileName is the name of the file in the journal's directory.
const FileName = "control.db"

// schema is of version 2.
const schema = `
CREATE TABLE IF NOT EXISTS objects (
	n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, org TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, used_at INTEGER
);
CREATE INDEX IF NOT EXISTS objects_of ON objects (org, kind, n);
CREATE UNIQUE INDEX IF NOT EXISTS objects_named ON objects (org, kind, name) WHERE name <> '';
CREATE TABLE IF NOT EXISTS lists (
	n INTEGER NOT NULL, list TEXT NOT NULL, org TEXT NOT NULL, kind TEXT NOT NULL, PRIMARY KEY (org, kind, list, n)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS lists_of ON lists (n);
CREATE TABLE IF NOT EXISTS secrets (
	hash BLOB PRIMARY KEY, id TEXT NOT NULL, place INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS secrets_of ON secrets (id);
CREATE TABLE IF NOT EXISTS events (
	n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, org TEXT NOT NULL, object TEXT NOT NULL, event TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS events_of ON events (org, n);
CREATE INDEX IF NOT EXISTS events_about ON events (org, object, n);
PRAGMA user_version = 2;`

// Log is the open file of a store.
type Log struct {
	db      *sql.DB
	path    string
	logger  *zap.Logger
	journal *journal.Journal // nil if nothing knows how far the file must reach
	detach  func()           // says that the process does not use the file any more, nil without a journal
	version atomic.Uint64
	control.Uses

	mu   sync.Mutex // of whoever changes something
	stop context.CancelFunc
	done chan struct{} // closed when no use is written any more
}

// Exists reports whether a directory has control objects, or has lost them.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, FileName))
	return !errors.Is(err, fs.ErrNotExist) || journal.Knows(dir, FileName)
}

// Open opens the file of a directory, or makes it. j is the journal in the directory, which
// knows how far the file must reach: if it does not, because it was deleted or replaced by an
// older one, the error is a journal.RefusedFileError, as it is for a file that is no database. j is
// nil if nothing knows.
func Open(dir string, j *journal.Journal, logger *zap.Logger) (*Log, error) {
	path := filepath.Join(dir, FileName)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && j != nil {
		if err := j.Witness().Compare(FileName, journal.Reach{}); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	db, err := sql.Open(libsqlite.Name, libsqlite.URI(path, url.Values{
		"_journal_mode": {"WAL"}, "_synchronous": {"FULL"}, "_busy_timeout": {"5000"}, "_txlock": {"immediate"},
	}))
	if err != nil {
		return nil, err
	}
	l := &Log{db: db, path: path, logger: logger, journal: j, done: make(chan struct{})}
	err = l.compare()
	if err == nil {
		err = l.migrate()
	}
	if err == nil {
		err = verifyChecksums(db)
	}
	if err != nil {
		return nil, errors.Join(l.refuse(path, err), db.Close())
	}
	if j != nil {
		l.detach = j.Witness().Attach(FileName, nil) // each commit is on the disk
	}
	l.note()
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	go l.keepUse(ctx)
	return l, nil
}

// Close writes when objects were last used, and closes the file.
func (l *Log) Close(context.Context) error {
	l.stop()
	<-l.done
	if l.detach != nil {
		l.detach()
	}
	return l.db.Close()
}

// CopyTo writes what is kept to the same file of another directory, as it is at one moment.
func (l *Log) CopyTo(ctx context.Context, dir string) error {
	to := filepath.Join(dir, FileName)
	if _, err := l.db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return err
	}
	return os.Chmod(to, 0o600)
}

// Version implements control.Log.
func (l *Log) Version() uint64 { return l.version.Load() }

// Trusted implements control.Log.
func (*Log) Trusted() bool { return true }

// Commit implements control.Log.
func (l *Log) Commit(ctx context.Context, org string, events []control.Event, unchanged ...control.Object) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	for _, o := range unchanged {
		if err := stands(ctx, tx, org, &o); err != nil {
			return err
		}
	}
	for i := range events {
		if err := apply(ctx, tx, org, &events[i]); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	l.version.Add(1)
	l.note()
	return nil
}

// stands checks that an object is as the caller knows it.
func stands(ctx context.Context, tx *sql.Tx, org string, o *control.Object) error {
	var value []byte
	err := tx.QueryRowContext(ctx, "SELECT value FROM objects WHERE id = ? AND org = ? AND kind = ?", o.ID, org, o.Kind).Scan(&value)
	if errors.Is(err, sql.ErrNoRows) || err == nil && string(value) != string(o.Value) {
		return control.ErrChanged
	}
	return err
}

// apply writes the object of an event, and the event if it has an ID.
func apply(ctx context.Context, tx *sql.Tx, org string, e *control.Event) error {
	if e.Changes() {
		if err := change(ctx, tx, org, e); err != nil {
			return err
		}
	}
	if e.ID == "" {
		return nil
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO events (id, org, object, event) VALUES (?, ?, ?, ?)", e.ID, org, e.Object, text)
	return err
}

// change writes the object of an event.
func change(ctx context.Context, tx *sql.Tx, org string, e *control.Event) error {
	if e.Before != nil {
		if err := stands(ctx, tx, org, e.Before); err != nil {
			return err
		}
		for _, statement := range []string{
			"DELETE FROM secrets WHERE id = ?",
			"DELETE FROM lists WHERE n = (SELECT n FROM objects WHERE id = ?)",
		} {
			if _, err := tx.ExecContext(ctx, statement, e.Object); err != nil {
				return err
			}
		}
	}
	if e.After == nil {
		_, err := tx.ExecContext(ctx, "DELETE FROM objects WHERE id = ?", e.Object)
		return err
	}
	return put(ctx, tx, org, e.After, e.Before == nil)
}

// put writes an object. The object's earlier lists and secrets must be deleted before.
func put(ctx context.Context, tx *sql.Tx, org string, o *control.Object, isNew bool) error {
	statement := "UPDATE objects SET name = ?, value = ?, sum = ? WHERE id = ? AND org = ? AND kind = ?"
	if isNew {
		statement = "INSERT INTO objects (name, value, sum, id, org, kind) VALUES (?, ?, ?, ?, ?, ?)"
	}
	_, err := tx.ExecContext(ctx, statement, o.Name, []byte(o.Value), checksumOf(o.ID, org, string(o.Kind), o.Value), o.ID, org, o.Kind)
	if libsqlite.ExtendedCode(err) == libsqlite.ConstraintUnique {
		return control.ErrTaken
	}
	if err != nil {
		return err
	}
	for _, list := range o.Lists {
		if _, err := tx.ExecContext(ctx, "INSERT INTO lists (n, list, org, kind) SELECT n, ?, org, kind FROM objects WHERE id = ?", list, o.ID); err != nil {
			return err
		}
	}
	for place, hash := range o.Hashes {
		if _, err := tx.ExecContext(ctx, "INSERT INTO secrets (hash, id, place) VALUES (?, ?, ?)", hash[:], o.ID, place); err != nil {
			return err
		}
	}
	return nil
}
