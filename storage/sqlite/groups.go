package sqlite

import (
	"context"
	"fmt"
	"sync"

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

// groupRows answers the query from column files and the tail, all of one snapshot of the database.
func (b *Backend) groupRows(ctx context.Context, turn *columnar.Turn, q *storage.GroupQuery, each func(*storage.GroupTotals) error) error {
	return b.withReader(ctx, func(ctx context.Context, r reader) error {
		tail, err := b.tails.begin(ctx, r) // nil if it is too large for memory
		if err != nil {
			return err
		}
		org, err := r.name(ctx, "org", q.Org)
		if err != nil {
			return err
		}
		tags, err := r.tags(ctx, q)
		if err != nil {
			return err
		}
		s := source{loader: loader{ctx, r}, mu: new(sync.Mutex), org: q.Org, orgID: org, contents: b.contents, files: b.files}
		return turn.Answer(ctx, &columnar.Query{GroupQuery: q, Org: org, Tags: tags, Source: s, Tail: tail}, each)
	})
}

// groupRecords answers the query from the records, of which it reads some at a time.
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
		parts := storage.ContentParts(q.Filter)
		for _, f := range q.Any {
			parts |= storage.ContentParts(f)
		}
		x.reads = wholeRecord
		matcher := x.where.matcher(b.contents, cancel)
		contents := b.contents.Reader(parts)
		defer contents.Close()
		scan := func(add func(*storage.Record, func() *storage.Content)) error {
			var failure error
			return x.candidates(ctx, x.timeOrder(false), func(row *row) error {
				load := func() *storage.Content {
					c, err := contents.Content(ctx, &row.record)
					if err != nil {
						failure = err
					}
					return c
				}
				if matcher.Match(&row.record, load) && failure == nil {
					add(&row.record, load)
				}
				return failure
			})
		}
		if q.GroupsBy(storage.ByTree) {
			if err := scan(func(r *storage.Record, _ func() *storage.Content) { grouper.AddRoot(r) }); err != nil {
				return err
			}
		}
		if err := scan(grouper.Add); err != nil {
			return err
		}
		return grouper.Answer(each)
	})
}
