package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/weirhq/weir/storage"
)

// view saves a view, or deletes it.
func (w *writer) view(org string, v *storage.View) error {
	if v.Screen == "" {
		_, err := w.c.exec("DELETE FROM views WHERE org = ? AND name = ?", org, v.Name)
		return err
	}
	_, err := w.c.exec("INSERT OR REPLACE INTO views (org, name, screen, state, updated_at) VALUES (?, ?, ?, ?, ?)",
		org, v.Name, v.Screen, v.State, int64(v.UpdatedAt))
	return err
}

// Views answers the saved views of an organisation, by name.
func (b *Backend) Views(ctx context.Context, org string) (views []storage.View, err error) {
	err = b.reading(ctx, func(ctx context.Context, r reader) error {
		return r.c.query(ctx, "SELECT name, screen, state, updated_at FROM views WHERE org = ? ORDER BY name", []driver.Value{org},
			func(row []driver.Value) error {
				views = append(views, storage.View{
					Name: row[0].(string), Screen: row[1].(string), State: row[2].(string), UpdatedAt: storage.Timestamp(row[3].(int64)),
				})
				return nil
			})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the views of %s from %s: %w", org, b.path, explain(err))
	}
	return views, nil
}

// Organisations answers those that there is something of.
func (b *Backend) Organisations(ctx context.Context) (orgs []string, err error) {
	err = b.reading(ctx, func(ctx context.Context, r reader) error {
		return r.c.query(ctx, "SELECT name FROM names WHERE kind = 'org' UNION SELECT org FROM session_tags UNION SELECT org FROM views UNION SELECT org FROM conversations ORDER BY 1", nil,
			func(row []driver.Value) error {
				orgs = append(orgs, row[0].(string))
				return nil
			})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the organisations of %s: %w", b.path, explain(err))
	}
	return orgs, nil
}

// SessionTags answers the tags of an organisation's sessions.
func (b *Backend) SessionTags(ctx context.Context, org string) (tags []*storage.Annotation, err error) {
	err = b.reading(ctx, func(ctx context.Context, r reader) error {
		return r.c.query(ctx, "SELECT session, tag, set_at FROM session_tags WHERE org = ?", []driver.Value{org},
			func(row []driver.Value) error {
				tag := row[1].(string)
				tags = append(tags, &storage.Annotation{Org: org, SessionID: row[0].(string), Tag: &tag, At: storage.Timestamp(row[2].(int64))})
				return nil
			})
	})
	if err != nil {
		return nil, fmt.Errorf("reading the tags of %s from %s: %w", org, b.path, explain(err))
	}
	return tags, nil
}
