package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// matchChunk is the number of records that are read by their keys at a time.
const matchChunk = 256

// matching is a query on which SQL alone does not decide: records stream through
// storage.Match, and the best of them are kept.
type matching struct {
	*query
	ctx     context.Context
	content func(context.Context, *storage.Record) (*storage.Content, error)
	matcher *storage.Matcher
	cancel  *storage.CancelCheck
	kept    []candidate

	// row is considered, and loaded its content, or failed the attempt to read it.
	row    *row
	loaded *storage.Content
	failed error
}

// candidate is a record that matched, with its place in the order.
type candidate struct {
	n     int64
	place *storage.Cursor[storage.SortKey]
}

// match answers what SQL alone cannot.
func (x *query) match(ctx context.Context) ([]*storage.Record, error) {
	m := &matching{query: x, ctx: ctx, content: x.contents.Content, cancel: storage.NewCancelCheck(ctx.Err)}
	m.matcher = storage.NewMatcher(x.where.residual, m.cancel)
	o := x.timeOrder(true)
	desc, byTime := x.byTime()
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
	if !x.SortsByContent() { // which keeps what it reads
		r := x.contents.Reader(storage.ContentParts(x.where.residual))
		defer r.Close()
		m.content = r.Content
	}
	want := x.Offset + min(x.Limit, math.MaxInt-x.Offset)
	err := x.candidates(ctx, o, func(r *row) error {
		full := len(m.kept) >= want
		if full && (x.Random || byTime && r.CreatedAt != columnar.CreatedAt(m.kept[want-1].n)) {
			return errStop // neither this one nor what follows can change the page
		}
		if full && len(m.kept)-want >= max(want, matchChunk) {
			m.sort(want)
		}
		return m.consider(r)
	})
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	if !x.Random {
		m.sort(want)
	}
	var keys []int64
	for _, c := range m.kept[min(x.Offset, len(m.kept)):] {
		keys = append(keys, c.n)
	}
	return x.page(ctx, keys)
}

// sort puts the best candidates into order and forgets the others.
func (m *matching) sort(want int) {
	slices.SortFunc(m.kept, storage.CancellableOrder(m.cancel, func(a, b candidate) int { return a.place.Compare(b.place) }))
	if len(m.kept) > want {
		clear(m.kept[want:])
		m.kept = m.kept[:want]
	}
}

// consider keeps a row when the filter is true of it.
func (m *matching) consider(r *row) error {
	m.row, m.loaded = r, nil
	if !m.matcher.Match(&r.Record, m.load) || m.failed != nil {
		return m.failed
	}
	if m.SortsByContent() && m.loaded == nil {
		m.load()
	}
	if place := m.Cursor(&r.Record, m.loaded); m.After == nil || place.Compare(m.After) > 0 {
		m.kept = append(m.kept, candidate{r.n, place})
	}
	return m.failed
}

// load reads the content of the row.
func (m *matching) load() *storage.Content {
	m.loaded, m.failed = m.content(m.ctx, &m.row.Record)
	return m.loaded
}

// candidates calls each with the records that SQL does not rule out, in an order.
// The row is each's until it returns.
func (x *query) candidates(ctx context.Context, o order, each func(*row) error) error {
	if x.reads == contentOnly && !x.Random {
		var r row
		statement, args := x.statement(contentOnly.list, joinDetails, o)
		return x.r.c.query(ctx, statement, args, func(values []driver.Value) error {
			contentOnly.decode(&r, values, nil)
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
