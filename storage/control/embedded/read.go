package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// Get implements control.Log.
func (l *Log) Get(ctx context.Context, org string, kind control.Kind, id string) (control.Object, error) {
	return l.read(ctx, "WHERE id = ? AND org = ? AND kind = ?", id, org, kind)
}

// Named implements control.Log.
func (l *Log) Named(ctx context.Context, org string, kind control.Kind, name string) (control.Object, error) {
	return l.read(ctx, "WHERE org = ? AND kind = ? AND name = ? AND name <> ''", org, kind, name)
}

// Find implements control.Log.
func (l *Log) Find(ctx context.Context, hash control.Hash) (control.Object, error) {
	return l.read(ctx, "JOIN secrets USING (id) WHERE hash = ?", hash[:])
}

// read reads one object with its hashes, at one moment.
func (l *Log) read(ctx context.Context, where string, args ...any) (o control.Object, err error) {
	rows, err := l.db.QueryContext(ctx, `WITH one AS (SELECT id, org, kind, value, used_at, sum FROM objects `+where+`)
		SELECT id, kind, value, used_at, s.place, s.hash, org, sum FROM one LEFT JOIN secrets s USING (id) ORDER BY s.place`, args...)
	if err != nil {
		return o, err
	}
	defer rows.Close()
	for rows.Next() {
		var place sql.NullInt64 // NULL for an object without secrets
		var hash []byte
		var used *int64
		var org string
		var sum sql.NullInt64
		if err := rows.Scan(&o.ID, &o.Kind, (*[]byte)(&o.Value), &used, &place, &hash, &org, &sum); err != nil {
			return o, err
		}
		if err := l.verifyChecksum(&o, org, sum); err != nil {
			return control.Object{}, err
		}
		o.UsedAt = l.Latest(o.ID, (*storage.Timestamp)(used))
		if place.Valid {
			o.Hashes = append(o.Hashes, control.Hash(hash))
		}
	}
	if o.ID == "" {
		return o, errors.Join(rows.Err(), control.ErrNotFound)
	}
	return o, rows.Err()
}

// place is where a page begins.
func (l *Log) place(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = l.db.QueryRowContext(ctx, query, args...).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		err = control.ErrNoPlace
	}
	return n, err
}

// List implements control.Log.
func (l *Log) List(ctx context.Context, org string, kind control.Kind, p control.Page) (page []control.Object, err error) {
	from, args := "objects", []any{org, kind}
	if p.List != "" {
		from, args = "lists JOIN objects USING (org, kind, n)", append(args, p.List)
	}
	where := "org = ? AND kind = ?"
	if p.List != "" {
		where += " AND list = ?"
	}
	if p.After != "" {
		place, err := l.place(ctx, "SELECT n FROM objects WHERE org = ? AND kind = ? AND id = ?", org, kind, p.After)
		if err != nil {
			return nil, err
		}
		where, args = where+" AND n > ?", append(args, place)
		if p.NewestFirst {
			where = where[:len(where)-len("> ?")] + "< ?"
		}
	}
	order := " ORDER BY n"
	if p.NewestFirst {
		order += " DESC"
	}
	if p.Limit > 0 {
		order, args = order+" LIMIT ?", append(args, p.Limit)
	}
	rows, err := l.db.QueryContext(ctx, "SELECT id, value, used_at, sum FROM "+from+" WHERE "+where+order, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		o := control.Object{Kind: kind}
		var used *int64
		var sum sql.NullInt64
		if err := rows.Scan(&o.ID, (*[]byte)(&o.Value), &used, &sum); err != nil {
			return nil, err
		}
		if err := l.verifyChecksum(&o, org, sum); err != nil {
			return nil, err
		}
		o.UsedAt = l.Latest(o.ID, (*storage.Timestamp)(used))
		page = append(page, o)
	}
	return page, rows.Err()
}

// Events implements control.Log.
func (l *Log) Events(ctx context.Context, org, object, before string, limit int) (page []control.Event, err error) {
	place := int64(math.MaxInt64)
	if before != "" {
		if place, err = l.place(ctx, "SELECT n FROM events WHERE org = ? AND id = ?", org, before); err != nil {
			return nil, err
		}
	}
	where, args := "org = ? AND n < ?", []any{org, place}
	if object != "" {
		where, args = where+" AND object = ?", append(args, object)
	}
	rows, err := l.db.QueryContext(ctx, "SELECT event FROM events WHERE "+where+" ORDER BY n DESC LIMIT ?", append(args, limit)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var text []byte
		var e control.Event
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

// Interface guard
var _ control.Log = (*Log)(nil)
