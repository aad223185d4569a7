package sqlite

import (
	"context"
	"fmt"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// Groups answers a query from columns if columns can answer it, else from the records.
func (b *Backend) Groups(ctx context.Context, q *storage.GroupQuery, each func(*storage.GroupTotals) error) error {
	var err error
	if columnar.Answers(q) {
		err = b.columns.InTurn(ctx, func(t *columnar.Turn) error { return b.groupRows(ctx, t, q, each) })
	} else {
		err = b.groupRecords(ctx, q, each)
	}
	if err != nil {
		return fmt.Errorf("querying %s: %w", b.path, explain(err))
	}
	return nil
}

func (b *Backend) groupRows(ctx context.Context, turn *columnar.Turn, q *storage.GroupQuery, each func(*storage.GroupTotals) error) error {
	return b.aggregating(ctx, func(ctx context.Context, r reader, t *columnar.Tail) error {
		org, err := r.name(ctx, "org", q.Org)
		if err != nil {
			return err
		}
		tags, err := r.tags(ctx, q)
		if err != nil {
			return err
		}
		s := source{loader: loader{ctx, r}, org: q.Org, orgID: org, contents: b.contents, files: b.files}
		return turn.Answer(ctx, &columnar.Query{GroupQuery: q, Org: org, Tags: tags, Source: s, Tail: t}, each)
	})
}

// groupRecords reads the records that the query chooses, a number at a time.
func (b *Backend) groupRecords(ctx context.Context, q *storage.GroupQuery, each func(*storage.GroupTotals) error) error {
	return b.withReader(ctx, func(ctx context.Context, r reader) error {
		tags, err := r.tags(ctx, q)
		if err != nil {
			return err
		}
		cancel := storage.NewCancelCheck(ctx.Err)
		grouper := storage.NewRecordGrouper(q, tags, cancel)
		x := &query{RequestQuery: &storage.RequestQuery{Org: q.Org, Filter: q.Filter}, r: r, contents: b.contents, where: newCondition(ctx, r, q.Window)}
		if x.where.query(x.RequestQuery); x.where.err != nil {
			return x.where.err
		}
		x.where.write(" AND r.n BETWEEN ? AND ?", x.where.from, x.where.to)
		parts := storage.ContentParts(q.Filter)
		for _, f := range q.Any {
			parts |= storage.ContentParts(f)
		}
		x.reads = wholeRecord
		matcher := storage.NewMatcher(x.where.filter.Residual, cancel)
		contents := b.contents.Reader(parts)
		defer contents.Close()
		add := grouper.Add
		var failed error
		next := func(row *row) error {
			load := func() *storage.Content {
				c, err := contents.Content(ctx, &row.Record)
				if err != nil {
					failed = err
				}
				return c
			}
			if matcher.Match(&row.Record, load) && failed == nil {
				add(&row.Record, load)
			}
			return failed
		}
		if q.GroupsBy(storage.ByTree) {
			add = func(r *storage.Record, _ func() *storage.Content) { grouper.AddRoot(r) }
			err = x.candidates(ctx, x.timeOrder(false), next)
			add = grouper.Add
		}
		if err == nil {
			err = x.candidates(ctx, x.timeOrder(false), next)
		}
		if err != nil {
			return err
		}
		return grouper.Answer(each)
	})
}

// aggregating gives do a snapshot of the database and of the tail in memory. The tail is nil
// when it is too large.
func (b *Backend) aggregating(ctx context.Context, do func(context.Context, reader, *columnar.Tail) error) error {
	return b.withReader(ctx, func(ctx context.Context, r reader) error {
		t, err := b.tails.begin(ctx, r)
		if err != nil {
			return err
		}
		return do(ctx, r, t)
	})
}
