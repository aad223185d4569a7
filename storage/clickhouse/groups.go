package clickhouse

import (
	"context"
	"time"

	"github.com/weirhq/weir/storage"
)

// Groups answers with the server's GROUP BY where that decides all, and else from the
// records.
func (b *Backend) Groups(ctx context.Context, q *storage.GroupQuery, each func(*storage.GroupTotals) error) error {
	return b.reading(ctx, q.Org, "querying ClickHouse", func(r *reader) error { return r.groups(ctx, q, each) })
}

func (r *reader) groups(ctx context.Context, q *storage.GroupQuery, each func(*storage.GroupTotals) error) error {
	where := r.where(q.Filter, r.within(q.Window)...)
	var tags map[string]string
	if q.GroupsBy(storage.BySessionTag) {
		tags = make(map[string]string)
		if err := r.tags(ctx, func(session, tag string, _ time.Time) { tags[session] = tag }); err != nil {
			return err
		}
	}
	g := &grouping{reader: r, query: q, where: where, tags: tags}
	if ok, err := g.compile(ctx); err != nil {
		return err
	} else if ok {
		if g.searchesNewest() {
			if err := g.newest(ctx); err != nil {
				return err
			}
		}
		return g.answer(ctx, each)
	}
	return r.groupRecords(ctx, q, where, tags, each)
}

// within returns the conditions of a window.
func (p *params) within(w storage.Window) (conditions []string) {
	if w.From != storage.Always.From {
		conditions = append(conditions, "created_at >= "+p.time(w.From))
	}
	if w.To != storage.Always.To {
		conditions = append(conditions, "created_at <= "+p.time(w.To))
	}
	if w.From > w.To {
		conditions = append(conditions, "0")
	}
	return conditions
}

// groupRecords reads the records that the query chooses.
func (r *reader) groupRecords(ctx context.Context, q *storage.GroupQuery, where *condition, tags map[string]string, each func(*storage.GroupTotals) error) error {
	cancel := storage.NewCancelCheck(ctx.Err)
	grouper := storage.NewRecordGrouper(q, tags, cancel)
	m := r.matching(ctx, q.Filter, cancel)
	condition := where.sql
	if q.GroupsBy(storage.ByScore) && !q.Apart {
		condition = all(condition, "request_id IN ("+scoredIDs+")")
	}
	walk := func(add func(*storage.Record)) error {
		return r.walk(ctx, condition, nil, false, nil, maxChunk, func(records []*storage.Record) (bool, error) {
			m.contents.Prefetch(records)
			for _, rec := range records {
				if q.Window.Contains(rec.CreatedAt) && m.match(rec) {
					add(rec)
				}
			}
			return m.failed == nil, m.failed
		})
	}
	if q.GroupsBy(storage.ByTree) {
		if err := walk(grouper.AddRoot); err != nil {
			return err
		}
	}
	err := walk(func(rec *storage.Record) { grouper.Add(rec, func() *storage.Content { return m.load(rec) }) })
	if err != nil {
		return err
	}
	return grouper.Answer(each)
}
