package storagetest

import (
	"context"
	"errors"

	"github.com/weirhq/weir/storage"
)

// Users evaluates the query.
func (m *Memory) Users(ctx context.Context, q *storage.UserQuery) (*storage.UserPage, error) {
	return answer(ctx, m, storage.ByUser, q.Org, q.Answer)
}

// UserOverview evaluates the query.
func (m *Memory) UserOverview(ctx context.Context, q *storage.UserOverviewQuery) (*storage.UserOverview, error) {
	return answer(ctx, m, storage.ByUser, q.Org, q.Answer)
}

// Sessions evaluates the query.
func (m *Memory) Sessions(ctx context.Context, q *storage.SessionQuery) ([]storage.Session, error) {
	return answer(ctx, m, storage.BySession, q.Org, q.Answer)
}

// SessionMetrics evaluates the query.
func (m *Memory) SessionMetrics(ctx context.Context, q *storage.SessionMetricsQuery) (*storage.SessionMetrics, error) {
	return answer(ctx, m, storage.BySession, q.Org, q.Answer)
}

// Scores evaluates the query.
func (m *Memory) Scores(ctx context.Context, q *storage.ScoreQuery) ([]storage.ScorePoint, error) {
	return answer(ctx, m, storage.ByScore, q.Org, q.Answer)
}

func answer[A any](ctx context.Context, m *Memory, by storage.Grouping, org string, from func(storage.Rows) (A, error)) (A, error) {
	var none A
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.usable(ctx); err != nil {
		return none, err
	}
	tags := make(map[string]string)
	for s, tag := range m.tags {
		if s.org == org {
			tags[s.id] = tag.text
		}
	}
	var failed error
	load := func(r *storage.Record) *storage.Content {
		c, err := m.contents.Content(ctx, r)
		failed = errors.Join(failed, err)
		return c
	}
	a, err := from(storage.RowsOf(by, org, m.all(), load, tags))
	if err := errors.Join(err, failed, ctx.Err()); err != nil {
		return none, err
	}
	return a, nil
}
