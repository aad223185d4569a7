package clickhouse

import (
	"context"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlfilter"
)

// condition selects records: sql is true of every record that the query asks for. If exact, sql is
// false of every other record.
type condition struct {
	sql   string
	exact bool
}

// where returns the condition of a filter, together with more conditions in SQL.
func (p *params) where(f storage.Filter, more ...string) *condition {
	c := sqlfilter.Compile(p, f)
	conditions := append([]string{ofOrg}, more...)
	if c.Prefilter != (storage.All{}) {
		conditions = append(conditions, c.All(c.Prefilter).SQL)
	}
	return &condition{all(conditions...), c.Exact()}
}

// chosen are the conditions of a query besides its filter.
func (p *params) chosen(q *storage.RequestQuery) (conditions []string) {
	for _, c := range sqlfilter.Chosen(p, q) {
		conditions = append(conditions, c.SQL)
	}
	return conditions
}

// matching matches chunks of records with their content.
type matching struct {
	ctx      context.Context
	matcher  *storage.Matcher
	contents contentReader
	failed   error
}

func (r *reader) matching(ctx context.Context, f storage.Filter, cancel *storage.CancelCheck) *matching {
	m := &matching{ctx: ctx, matcher: storage.NewMatcher(f, cancel)}
	m.contents.readerOf = func(string) (*reader, error) { return r, nil }
	return m
}

func (m *matching) match(rec *storage.Record) bool {
	return m.matcher.Match(rec, func() *storage.Content { return m.load(rec) })
}

func (m *matching) load(rec *storage.Record) (content *storage.Content) {
	if m.failed == nil {
		content, m.failed = m.contents.Content(m.ctx, rec)
	}
	return content
}
