package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// annotate applies an annotation. An annotation on an unknown record is dropped.
func (w *writer) annotate(ctx context.Context, f *storage.Annotation) error {
	if f.Tag != nil {
		_, err := w.c.exec("INSERT OR REPLACE INTO session_tags (org, session, tag, set_at) VALUES (?, ?, ?, ?)",
			f.Org, f.SessionID, *f.Tag, int64(f.At))
		if err != nil {
			return err
		}
	}
	if f.View != nil {
		if err := w.view(f.Org, f.View); err != nil {
			return err
		}
	}
	if f.Conversation != nil {
		if err := w.conversation(f); err != nil {
			return err
		}
	}
	if f.RequestID == uuid.Nil {
		return nil
	}
	old, err := w.rows.byKey(ctx, f.Key())
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	next := *old
	f.Apply(&next.record)
	if p := f.Property; p != nil {
		next.annotated = storage.Merge(old.annotated, map[string]string{p.Name: p.Value})
	}
	next.annotatedAt = max(old.annotatedAt, f.At)
	return w.replace(old, &next)
}

// tags returns the tags by session of an organisation, nil if the query does not group by them.
func (r reader) tags(ctx context.Context, q *storage.GroupQuery) (tags map[string]string, err error) {
	if !q.GroupsBy(storage.BySessionTag) {
		return nil, nil
	}
	tags = make(map[string]string)
	return tags, r.c.query(ctx, "SELECT session, tag FROM session_tags WHERE org = ?", []driver.Value{q.Org}, func(row []driver.Value) error {
		tags[row[0].(string)] = row[1].(string)
		return nil
	})
}

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

// list returns the value of each row of a statement. what names the values in an error.
func list[T any](ctx context.Context, b *Backend, what, statement string, args []driver.Value, value func(row []driver.Value) T) (all []T, err error) {
	err = b.withReader(ctx, func(ctx context.Context, r reader) error {
		return r.c.query(ctx, statement, args, func(row []driver.Value) error {
			all = append(all, value(row))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", what, b.path, explain(err))
	}
	return all, nil
}

// firstText returns the text in the first column of a row.
func firstText(row []driver.Value) string { return row[0].(string) }

// Views returns the saved views of an organisation, by name.
func (b *Backend) Views(ctx context.Context, org string) ([]storage.View, error) {
	const query = "SELECT name, screen, state, updated_at FROM views WHERE org = ? ORDER BY name"
	return list(ctx, b, "the views of "+org+" from", query, []driver.Value{org}, func(row []driver.Value) storage.View {
		return storage.View{Name: row[0].(string), Screen: row[1].(string), State: row[2].(string), UpdatedAt: storage.Timestamp(row[3].(int64))}
	})
}

// Organisations returns the organisations with a record, a tag, a view or a conversation.
func (b *Backend) Organisations(ctx context.Context) ([]string, error) {
	const query = "SELECT name FROM names WHERE kind = 'org' UNION SELECT org FROM session_tags UNION SELECT org FROM views UNION SELECT org FROM conversations ORDER BY 1"
	return list(ctx, b, "the organisations of", query, nil, firstText)
}

// SessionTags returns the tags of an organisation's sessions.
func (b *Backend) SessionTags(ctx context.Context, org string) ([]*storage.Annotation, error) {
	const query = "SELECT session, tag, set_at FROM session_tags WHERE org = ?"
	return list(ctx, b, "the tags of "+org+" from", query, []driver.Value{org}, func(row []driver.Value) *storage.Annotation {
		return &storage.Annotation{Org: org, SessionID: row[0].(string), Tag: new(row[1].(string)), At: storage.Timestamp(row[2].(int64))}
	})
}

// SessionTag returns the tag of a session, "" if it has none.
func (b *Backend) SessionTag(ctx context.Context, org, sessionID string) (string, error) {
	const query = "SELECT tag FROM session_tags WHERE org = ? AND session = ?"
	tags, err := list(ctx, b, "the tag of session "+sessionID+" from", query, []driver.Value{org, sessionID}, firstText)
	if len(tags) == 0 {
		return "", err
	}
	return tags[0], nil
}
