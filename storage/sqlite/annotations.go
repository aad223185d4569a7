package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// annotate applies an annotation; one on an unknown record is dropped.
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
	if len(f.Scores) > 0 {
		next.Scores = with(old.Scores, f.Scores)
	}
	if f.Feedback != nil {
		next.Feedback = f.Feedback
	}
	if len(f.Removed) > 0 {
		next.Scores = maps.Clone(next.Scores)
		for _, name := range f.Removed {
			delete(next.Scores, name)
		}
		if slices.Contains(f.Removed, storage.FeedbackScore) {
			next.Feedback = nil
		}
	}
	if p := f.Property; p != nil {
		set := map[string]string{p.Name: p.Value}
		next.Properties, next.annotated = with(old.Properties, set), with(old.annotated, set)
	}
	next.annotatedAt = max(old.annotatedAt, f.At)
	next.UpdatedAt = max(old.UpdatedAt, f.At)
	return w.replace(old, &next)
}

// with is a and b, where b wins. Neither changes.
func with[V any](a, b map[string]V) map[string]V {
	m := make(map[string]V, len(a)+len(b))
	maps.Copy(m, a)
	maps.Copy(m, b)
	return m
}

// readsTags tells whether the query groups by the tags of sessions.
func readsTags(q *storage.GroupQuery) bool {
	for _, d := range q.By {
		if d.Name == storage.BySessionTag {
			return true
		}
	}
	return false
}

// tags reads the tags of an organisation's sessions.
func (r reader) tags(ctx context.Context, org string) (map[string]string, error) {
	tags := make(map[string]string)
	return tags, r.c.query(ctx, "SELECT session, tag FROM session_tags WHERE org = ?", []driver.Value{org}, func(row []driver.Value) error {
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

// SessionTag answers the tag of a session, "" if it has none.
func (b *Backend) SessionTag(ctx context.Context, org, sessionID string) (tag string, err error) {
	err = b.reading(ctx, func(ctx context.Context, r reader) error {
		return r.c.query(ctx, "SELECT tag FROM session_tags WHERE org = ? AND session = ?", []driver.Value{org, sessionID},
			func(row []driver.Value) error {
				tag = row[0].(string)
				return nil
			})
	})
	if err != nil {
		return "", fmt.Errorf("reading the tag of session %s from %s: %w", sessionID, b.path, explain(err))
	}
	return tag, nil
}
