package keys

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"

	"github.com/weirhq/weir/storage"
)

// reader is a database, or a transaction.
type reader interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// readKey reads a key of an organisation.
func readKey(ctx context.Context, r reader, org, id string) (*Key, error) {
	var text []byte
	err := r.QueryRowContext(ctx, "SELECT key FROM keys WHERE id = ? AND org = ?", id, org).Scan(&text)
	return parse(ctx, r, text, err)
}

// parse reads a key, whose secrets stand by themselves.
func parse(ctx context.Context, r reader, text []byte, err error) (*Key, error) {
	if errors.Is(err, sql.ErrNoRows) {
		return nil, ErrNotFound
	}
	k := new(Key)
	if err == nil {
		err = json.Unmarshal(text, k)
	}
	if err != nil {
		return nil, err
	}
	rows, err := r.QueryContext(ctx, "SELECT place, hash FROM secrets WHERE id = ?", k.ID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var place int
		var hash []byte
		if err := rows.Scan(&place, &hash); err != nil {
			return nil, err
		}
		copy(k.Secrets[place].hash[:], hash)
	}
	return k, rows.Err()
}

// Find returns the key that has a secret of this hash, whether it opens anything or not.
func (l *Log) Find(ctx context.Context, hash Hash) (*Key, error) {
	var text []byte
	err := l.db.QueryRowContext(ctx, "SELECT key FROM keys JOIN secrets USING (id) WHERE hash = ?", hash[:]).Scan(&text)
	return parse(ctx, l.db, text, err)
}

// Listed is a key of a list.
type Listed struct {
	*Key
	// LastUsedAt is when a call last had the key, to the minute; nil for never.
	LastUsedAt *storage.Timestamp `json:"last_used_at"`
}

// Key returns a key of an organisation.
func (l *Log) Key(ctx context.Context, org, id string) (Listed, error) {
	page, err := l.list(ctx, "org = ? AND id = ? ORDER BY n", 1, org, id)
	if err == nil && len(page) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Listed{}, err
	}
	return page[0], nil
}

// Keys returns up to limit keys of an organisation, the oldest first, after the one of an id,
// "" for the first. A project bounds them unless it is "". The error may be ErrNoPlace.
func (l *Log) Keys(ctx context.Context, org, project, after string, limit int) ([]Listed, error) {
	var place int64
	if after != "" {
		var err error
		if place, err = l.place(ctx, "SELECT n FROM keys WHERE org = ? AND id = ?", org, after); err != nil {
			return nil, err
		}
	}
	return l.list(ctx, "org = ? AND (? = '' OR project = ?) AND n > ? ORDER BY n", limit, org, project, project, place)
}

// KeysOfScope returns up to limit keys of an organisation that have a scope, after the key of
// an id, "" for the first. They are the oldest first, or the newest first. The error may be
// ErrNoPlace.
func (l *Log) KeysOfScope(ctx context.Context, org, scope, after string, newestFirst bool, limit int) ([]Listed, error) {
	where, place := "n > ? ORDER BY n", int64(0)
	if newestFirst {
		where, place = "n < ? ORDER BY n DESC", math.MaxInt64
	}
	if after != "" {
		var err error
		if place, err = l.place(ctx, "SELECT n FROM keys WHERE org = ? AND id = ?", org, after); err != nil {
			return nil, err
		}
	}
	return l.list(ctx, "org = ? AND EXISTS (SELECT 1 FROM json_each(CAST(keys.key AS TEXT), '$.scopes') WHERE value = ?) AND "+where, limit, org, scope, place)
}

// place is where a page begins.
func (l *Log) place(ctx context.Context, query, org, id string) (n int64, err error) {
	err = l.db.QueryRowContext(ctx, query, org, id).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNoPlace
	}
	return n, err
}

func (l *Log) list(ctx context.Context, where string, limit int, args ...any) (page []Listed, err error) {
	rows, err := l.db.QueryContext(ctx, "SELECT key, used_at FROM keys WHERE "+where+" LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text []byte
		var used *int64
		k := new(Key)
		if err := rows.Scan(&text, &used); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, k); err != nil {
			return nil, err
		}
		page = append(page, Listed{k, (*storage.Timestamp)(used)})
	}
	return page, rows.Err()
}

// Events returns up to limit events of an organisation, the newest first, before the one of
// an id, "" for the newest. An object bounds them unless it is "". The error may be
// ErrNoPlace.
func (l *Log) Events(ctx context.Context, org, object, before string, limit int) (page []Event, err error) {
	place := int64(math.MaxInt64)
	if before != "" {
		if place, err = l.place(ctx, "SELECT n FROM events WHERE org = ? AND id = ?", org, before); err != nil {
			return nil, err
		}
	}
	rows, err := l.db.QueryContext(ctx, `SELECT event FROM events WHERE org = ? AND (? = '' OR object = ?) AND n < ?
		ORDER BY n DESC LIMIT ?`, org, object, object, place, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text []byte
		var e Event
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, err
		}
		page = append(page, e)
	}
	return page, rows.Err()
}
