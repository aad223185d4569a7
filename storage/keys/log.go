package keys

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	_ "github.com/mattn/go-sqlite3" // the database
	"go.uber.org/zap"

	"github.com/weirhq/weir/storage"
)

// fileName is the name of the file in the journal's directory.
const fileName = "control.db"

// schema is of version 1.
const schema = `
CREATE TABLE IF NOT EXISTS keys (
	n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, org TEXT NOT NULL, project TEXT NOT NULL, key TEXT NOT NULL, used_at INTEGER
);
CREATE INDEX IF NOT EXISTS keys_of ON keys (org, n);
CREATE TABLE IF NOT EXISTS secrets (
	hash BLOB PRIMARY KEY, id TEXT NOT NULL, place INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS secrets_of ON secrets (id);
CREATE TABLE IF NOT EXISTS events (
	n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, org TEXT NOT NULL, object TEXT NOT NULL, event TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS events_of ON events (org, n);
PRAGMA user_version = 1;`

// Log is the open file of a store.
type Log struct {
	db      *sql.DB
	logger  *zap.Logger
	version atomic.Uint64

	mu   sync.Mutex // of whoever changes something
	used uses
}

// Exists reports whether a directory has keys.
func Exists(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, fileName))
	return !errors.Is(err, fs.ErrNotExist)
}

// Open opens the file of a directory, or makes it. Whoever owns the directory keeps other
// processes out.
func Open(dir string, logger *zap.Logger) (*Log, error) {
	path := filepath.Join(dir, fileName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	name := url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: "_journal_mode=WAL&_synchronous=FULL&_busy_timeout=5000&_txlock=immediate"}
	db, err := sql.Open("sqlite3", name.String())
	if err != nil {
		return nil, err
	}
	if _, err := db.Exec(schema); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), db.Close())
	}
	l := &Log{db: db, logger: logger}
	l.used.begin(l)
	return l, nil
}

// Close writes when keys were last used, and closes the file.
func (l *Log) Close(context.Context) error {
	l.used.end()
	return l.db.Close()
}

// CopyTo writes what is kept to the same file of another directory, as it is at one moment.
func (l *Log) CopyTo(ctx context.Context, dir string) error {
	to := filepath.Join(dir, fileName)
	if _, err := l.db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return err
	}
	return os.Chmod(to, 0o600)
}

// Version changes with each change.
func (l *Log) Version() uint64 { return l.version.Load() }

// Create keeps a new key with a secret of its own, which nobody can read again.
func (l *Log) Create(ctx context.Context, by Actor, org string, settings Settings) (k *Key, secret string, err error) {
	now := storage.Millis(time.Now())
	secret, first := newSecret(now)
	k = &Key{ID: newID("key_"), Org: org, Settings: settings, CreatedAt: now, Secrets: []Secret{first}}
	err = l.change(ctx, by, org, Created, k.ID, func(*Key) (*Key, error) { return k, nil })
	return k, secret, err
}

// Update changes the settings of a key.
func (l *Log) Update(ctx context.Context, by Actor, org, id string, set func(*Settings) error) (k *Key, err error) {
	err = l.change(ctx, by, org, Updated, id, func(before *Key) (*Key, error) {
		k = before
		return k, set(&k.Settings)
	})
	return k, err
}

// Rotate gives a key another secret. Those that it has end after a while.
func (l *Log) Rotate(ctx context.Context, by Actor, org, id string, overlap time.Duration) (k *Key, secret string, err error) {
	now := storage.Millis(time.Now())
	secret, next := newSecret(now)
	ends := now + storage.Timestamp(overlap.Milliseconds())
	err = l.change(ctx, by, org, Rotated, id, func(before *Key) (*Key, error) {
		k = before
		k.Secrets = slices.DeleteFunc(k.Secrets, func(s Secret) bool { return s.EndsAt != nil && *s.EndsAt <= now })
		for i := range k.Secrets {
			if s := &k.Secrets[i]; s.EndsAt == nil || *s.EndsAt > ends {
				s.EndsAt = &ends
			}
		}
		k.Secrets = append(k.Secrets, next)
		return k, nil
	})
	return k, secret, err
}

// Delete ends a key for good. Its events stay.
func (l *Log) Delete(ctx context.Context, by Actor, org, id string) error {
	return l.change(ctx, by, org, Deleted, id, func(*Key) (*Key, error) { return nil, nil })
}

// change makes a key what next returns, and keeps the event. next gets a copy of the key as
// it is, nil if there is none; it returns nil to delete the key.
func (l *Log) change(ctx context.Context, by Actor, org string, action Action, id string, next func(before *Key) (*Key, error)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	tx, err := l.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after Commit
	e := Event{ID: newID("evt_"), At: storage.Millis(time.Now()), Actor: by, Action: action, Object: id}
	var copied *Key
	if action != Created {
		if e.Before, err = readKey(ctx, tx, org, id); err != nil {
			return err
		}
		if copied, err = readKey(ctx, tx, org, id); err != nil {
			return err
		}
	}
	if e.After, err = next(copied); err != nil {
		return err
	}
	if err := keep(ctx, tx, org, &e); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	l.version.Add(1)
	return nil
}

// keep writes the key of an event, and the event.
func keep(ctx context.Context, tx *sql.Tx, org string, e *Event) error {
	if e.Before != nil {
		if _, err := tx.ExecContext(ctx, "DELETE FROM secrets WHERE id = ?", e.Object); err != nil {
			return err
		}
	}
	if k := e.After; k == nil {
		if _, err := tx.ExecContext(ctx, "DELETE FROM keys WHERE id = ?", e.Object); err != nil {
			return err
		}
	} else {
		text, err := json.Marshal(k)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO keys (id, org, project, key) VALUES (?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET project = excluded.project, key = excluded.key`, k.ID, org, k.Project, text); err != nil {
			return err
		}
		for place, s := range k.Secrets {
			if _, err := tx.ExecContext(ctx, "INSERT INTO secrets (hash, id, place) VALUES (?, ?, ?)", s.hash[:], k.ID, place); err != nil {
				return err
			}
		}
	}
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "INSERT INTO events (id, org, object, event) VALUES (?, ?, ?, ?)", e.ID, org, e.Object, text)
	return err
}
