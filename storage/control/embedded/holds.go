package embedded

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/libsqlite"
	"github.com/weirhq/weir/storage/control"
)

// TakeHolds places the holds in the file of a directory that another directory's file has in force:
// those that were placed after the first was copied. No process uses the directory. It returns
// how many these are.
func TakeHolds(ctx context.Context, dir, from string) (taken int, err error) {
	placed, err := holdEvents(ctx, filepath.Join(from, FileName))
	if err != nil || len(placed) == 0 {
		return 0, err
	}
	l, err := Open(dir, nil, zap.NewNop())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close(ctx)) }()
	for org, events := range placed {
		for _, e := range events {
			_, err := l.Get(ctx, org, control.KindHold, e.Object)
			if err == nil {
				continue
			}
			if errors.Is(err, control.ErrNotFound) {
				err = l.Commit(ctx, org, []control.Event{e})
			}
			if err != nil {
				return taken, err
			}
			taken++
		}
	}
	return taken, nil
}

// holdEvents returns the events that placed the holds in force, by organisation. A file that is
// not there has none.
func holdEvents(ctx context.Context, path string) (map[string][]control.Event, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	db, err := sql.Open(libsqlite.Name, libsqlite.URI(path, libsqlite.ReadOnly(path)))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, `SELECT o.org, o.id, o.value, e.event FROM objects o JOIN events e ON e.org = o.org AND e.object = o.id
		WHERE o.kind = ? AND NOT EXISTS (SELECT 1 FROM events f WHERE f.org = e.org AND f.object = e.object AND f.n < e.n) ORDER BY o.n`, control.KindHold)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer rows.Close()
	placed := make(map[string][]control.Event)
	for rows.Next() {
		var org, id string
		var value, text []byte
		var e control.Event
		if err := rows.Scan(&org, &id, &value, &text); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &e); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		e.After = &control.Object{ID: id, Kind: control.KindHold, Value: value}
		placed[org] = append(placed[org], e)
	}
	return placed, rows.Err()
}
