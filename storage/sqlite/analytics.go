package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/weirhq/weir/storage"
)

// Users answers one page of users.
func (b *Backend) Users(ctx context.Context, q *storage.UserQuery) (*storage.UserPage, error) {
	return aggregate(ctx, b, storage.ByUser, q.Org, q.Filter, q.Answer)
}

// UserOverview answers what users cost and ask over time.
func (b *Backend) UserOverview(ctx context.Context, q *storage.UserOverviewQuery) (*storage.UserOverview, error) {
	return aggregate(ctx, b, storage.ByUser, q.Org, q.Filter, q.Answer)
}

// Sessions answers one page of sessions, newest first.
func (b *Backend) Sessions(ctx context.Context, q *storage.SessionQuery) ([]storage.Session, error) {
	return aggregate(ctx, b, storage.BySession, q.Org, q.Filter, func(r storage.Rows) ([]storage.Session, error) {
		return q.Answer(newestSessions(r.(*rows), q))
	})
}

// SessionMetrics answers what sessions are like over time.
func (b *Backend) SessionMetrics(ctx context.Context, q *storage.SessionMetricsQuery) (*storage.SessionMetrics, error) {
	return aggregate(ctx, b, storage.BySession, q.Org, q.Filter, q.Answer)
}

// Scores answers the scores of requests over time.
func (b *Backend) Scores(ctx context.Context, q *storage.ScoreQuery) ([]storage.ScorePoint, error) {
	return aggregate(ctx, b, storage.ByScore, q.Org, q.Filter, q.Answer)
}

// aggregate answers a query from the rows of an organisation.
func aggregate[A any](ctx context.Context, b *Backend, by storage.Grouping, org string, f storage.Filter, answer func(storage.Rows) (A, error)) (a A, err error) {
	err = b.aggregating(ctx, func(ctx context.Context, r reader, t *table) error {
		x := &rows{ctx: ctx, r: r, contents: b.contents, org: org, column: groupColumns[by], table: t}
		if t == nil {
			x.table = new(table)
			x.loader = newLoader(ctx, r, x.table)
		}
		if comparesTag(f) {
			if err := x.readTags(); err != nil {
				return err
			}
		}
		a, err = answer(x)
		return err
	})
	if err != nil {
		var none A
		return none, fmt.Errorf("querying %s: %w", b.path, explain(err))
	}
	return a, nil
}

// comparesTag tells whether the filter compares the tags of sessions.
func comparesTag(f storage.Filter) bool {
	for l := range storage.Leaves(f) {
		if l.Field.Group == storage.SessionsView && l.Field.Name == "session_tag" {
			return true
		}
	}
	return false
}

// aggregating gives do one snapshot of the database and of the table in memory,
// which is nil when it is too large.
func (b *Backend) aggregating(ctx context.Context, do func(context.Context, reader, *table) error) error {
	k, err := b.columnCache(ctx)
	if err != nil {
		return err
	}
	return b.reading(ctx, func(ctx context.Context, r reader) error {
		t, err := k.begin(ctx, r)
		if err != nil {
			return err
		}
		return do(ctx, r, t)
	})
}

// columnCache is that of the open database, with its table if it fits.
func (b *Backend) columnCache(ctx context.Context) (*columnCache, error) {
	b.mu.RLock()
	k := b.kept
	b.mu.RUnlock()
	if k == nil {
		return nil, errClosed
	}
	return k, k.ready(ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), loadTimeout)
		defer cancel()
		k.loaded(b.reading(ctx, k.load))
	})
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
