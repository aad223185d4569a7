package clickhouse

import (
	"context"
	"strings"

	"github.com/weirhq/weir/storage"
)

// condition chooses records: sql is true of all that are asked for, and residual is
// what a storage.Matcher decides on those that come.
type condition struct {
	sql      string
	residual storage.Filter
}

// exact is true when the server alone decides.
func (c *condition) exact() bool { return c.residual == storage.All{} }

// where is the condition of a query's filter, and of more that the server decides.
func (p *params) where(f storage.Filter, more ...string) *condition {
	compiled := make(map[*storage.Leaf]clause)
	plan := storage.Plan{Prefilter: storage.All{}, Residual: f}
	if small(f) {
		plan = storage.PlanFilter(f, func(l *storage.Leaf) storage.Support {
			c, ok := compiled[l]
			if !ok {
				c = p.leaf(l)
				compiled[l] = c
			}
			return c.support
		})
	}
	conditions := append([]string{ofOrg}, more...)
	if plan.Prefilter != (storage.All{}) {
		conditions = append(conditions, expression(plan.Prefilter, compiled))
	}
	return &condition{all(conditions...), plan.Residual}
}

// chosen are the conditions of a query besides its filter.
func (p *params) chosen(q *storage.RequestQuery) (conditions []string) {
	flag := func(want *bool, condition string) {
		if want != nil {
			conditions = append(conditions, exactly(condition).notIf(!*want).sql)
		}
	}
	flag(q.Cached, "cache_reference != "+noID)
	flag(q.Experiment, "experiment != ''")
	flag(q.Scored, "request_id IN ("+scoredIDs+")")
	return conditions
}

// The server bounds how deep expressions nest, and Weir how many there are.
const (
	maxDepth  = 200
	maxLeaves = 1000
)

// small is false of a filter that is too large for SQL, which storage.Matcher decides
// on alone.
func small(f storage.Filter) bool {
	type part struct {
		storage.Filter
		depth int
	}
	leaves := 0
	for rest := []part{{f, 0}}; len(rest) > 0; {
		p := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		if b, ok := p.Filter.(*storage.Branch); ok {
			rest = append(rest, part{b.Left, p.depth + 1}, part{b.Right, p.depth + 1})
		} else {
			leaves++
		}
		if p.depth > maxDepth || leaves > maxLeaves {
			return false
		}
	}
	return true
}

// expression is a filter that is small.
func expression(f storage.Filter, compiled map[*storage.Leaf]clause) string {
	switch f := f.(type) {
	case *storage.Leaf:
		return compiled[f].sql
	case *storage.Branch:
		parts, operator := storage.Conjuncts(f), " AND "
		if f.Or {
			parts, operator = storage.Disjuncts(f), " OR "
		}
		var texts []string
		for part := range parts {
			texts = append(texts, expression(part, compiled))
		}
		if len(texts) > 0 {
			return "(" + strings.Join(texts, operator) + ")"
		}
	}
	return "1"
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
