package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/weirhq/weir/storage"
)

// Users answers one page of users.
func (b *Backend) Users(ctx context.Context, q *storage.UserQuery) (*storage.UserPage, error) {
	return aggregate(ctx, b, storage.ByUser, q.Org, q.Answer)
}

// UserOverview answers what users cost and ask over time.
func (b *Backend) UserOverview(ctx context.Context, q *storage.UserOverviewQuery) (*storage.UserOverview, error) {
	return aggregate(ctx, b, storage.ByUser, q.Org, q.Answer)
}

// Sessions answers one page of sessions, newest first.
func (b *Backend) Sessions(ctx context.Context, q *storage.SessionQuery) ([]storage.Session, error) {
	return aggregate(ctx, b, storage.BySession, q.Org, q.Answer)
}

// SessionMetrics answers what sessions are like over time.
func (b *Backend) SessionMetrics(ctx context.Context, q *storage.SessionMetricsQuery) (*storage.SessionMetrics, error) {
	return aggregate(ctx, b, storage.BySession, q.Org, q.Answer)
}

// Scores answers the scores of requests over time.
func (b *Backend) Scores(ctx context.Context, q *storage.ScoreQuery) ([]storage.ScorePoint, error) {
	return aggregate(ctx, b, storage.ByScore, q.Org, q.Answer)
}

// aggregate answers a query from the rows of an organisation.
func aggregate[A any](ctx context.Context, b *Backend, by storage.Grouping, org string, answer func(storage.Rows) (A, error)) (a A, err error) {
	err = b.reading(ctx, func(ctx context.Context, r reader) error {
		rows := newRows(ctx, r, b.contents, by, org)
		if a, err = answer(rows); err == nil {
			err = rows.err
		}
		return err
	})
	if err != nil {
		var none A
		return none, fmt.Errorf("querying %s: %w", b.path, explain(err))
	}
	return a, nil
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
