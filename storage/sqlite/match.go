package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// matchChunk is the number of records that are read by their keys at a time.
const matchChunk = 256

// matchedQuery is a query that SQL alone cannot decide: the records that SQL finds pass through
// storage.Match, and it keeps the first of them in the order of the query.
type matchedQuery struct {
	*query
	ctx     context.Context
	content func(context.Context, *storage.Record) (*storage.Content, error)
	matcher *recordMatcher
	best    *storage.Page[int64] // keys

	// row is considered, and loaded its content, or failed the attempt to read it.
	row    *row
	loaded *storage.Content
	failed error
}

// match answers what SQL alone cannot.
func (x *query) match(ctx context.Context) ([]*storage.Record, error) {
	cancel := storage.NewCancelCheck(ctx.Err)
	m := &matchedQuery{query: x, ctx: ctx, content: x.contents.Content, matcher: x.where.matcher(x.contents, cancel), best: storage.NewPage[int64](x.RequestQuery, cancel)}
	o := x.timeOrder(true)
	desc, byTime := x.ByTime()
	switch {
	case x.Random:
		o = x.order()
	case byTime:
		o = x.timeOrder(desc)
	}
	x.reads = x.where.reads()
	if !byTime && !x.Random {
		x.reads = wholeRecord // to sort by
	}
	if !x.SortsByContent() { // sorting by content keeps what it reads
		r := x.contents.Reader(storage.ContentParts(x.where.filter.Residual))
		defer r.Close()
		m.content = r.Content
	}
	err := x.candidates(ctx, o, func(r *row) error {
		if m.best.Done(r.record.CreatedAt) || x.Random && m.best.Full() { // they come in a random order
			return errStop
		}
		return m.consider(r)
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	return x.page(ctx, m.best.Items())
}

// consider keeps a row that the filter matches.
func (m *matchedQuery) consider(r *row) error {
	r.record.Org = m.Org // whatever was read of it: who reads content compares the key
	m.row, m.loaded = r, nil
	if !m.matcher.Match(&r.record, m.load) || m.failed != nil {
		return m.failed
	}
	if m.SortsByContent() && m.loaded == nil {
		m.load()
	}
	m.best.Add(&r.record, m.loaded, r.n)
	return m.failed
}

// load reads the content of the row.
func (m *matchedQuery) load() *storage.Content {
	m.loaded, m.failed = m.content(m.ctx, &m.row.record)
	return m.loaded
}

// candidates calls each with the records that SQL does not rule out, in an order.
// The row is each's until it returns.
func (x *query) candidates(ctx context.Context, o order, each func(*row) error) error {
	return x.where.each(x.contents, o.desc, x.Random, func() error {
		var stopped error // which ends the statement without an error
		err := x.chosen(ctx, o, func(r *row) error {
			stopped = each(r)
			return stopped
		})
		return cmp.Or(err, stopped)
	})
}

// chosen is candidates for the keys that the condition has found, if it finds keys.
func (x *query) chosen(ctx context.Context, o order, each func(*row) error) error {
	if x.reads == contentOnly && !x.Random {
		var r row
		statement, args := x.statement(contentOnly.list, joinDetails, o)
		return x.r.c.query(ctx, statement, args, func(values []driver.Value) error {
			contentOnly.decode(&r, values)
			return each(&r)
		})
	}
	var chunk []int64
	next := func() error {
		rows, err := x.r.project(ctx, x.reads, chunk)
		chunk = chunk[:0]
		for i := 0; i < len(rows) && err == nil; i++ {
			err = each(rows[i])
		}
		return err
	}
	err := x.scan(ctx, o, func(n int64, _ uuid.UUID) error {
		if chunk = append(chunk, n); len(chunk) < matchChunk {
			return nil
		}
		return next()
	})
	if err != nil {
		return err
	}
	return next()
}
