package sqlite

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// matchChunk is the number of records that match reads at a time.
const matchChunk = 256

// candidate is a record that matched, with its place in the order.
type candidate struct {
	*row
	rank storage.Rank
}

// match answers what SQL alone cannot: records stream through storage.Match,
// and the best of them are kept.
func (x *query) match(ctx context.Context) ([]*storage.Record, error) {
	o := x.timeOrder(true)
	desc, byTime := x.byTime()
	switch {
	case x.Random:
		o = x.order()
	case byTime:
		o = x.timeOrder(desc)
	}
	if x.undecided == nil {
		x.undecided = storage.All{}
	}
	if !byTime && !x.Random || x.reads == nil {
		x.reads = wholeRecord // to sort by
	}
	want := x.Offset + min(x.Limit, math.MaxInt-x.Offset)
	var kept []candidate
	var chunk []int64
	// next considers a chunk, until neither it nor what follows can change the
	// page.
	next := func() error {
		rows, err := x.r.project(ctx, x.reads, chunk)
		if err != nil {
			return err
		}
		chunk = chunk[:0]
		for _, row := range rows {
			if len(kept) >= want && (x.Random || byTime && row.CreatedAt != kept[want-1].CreatedAt) {
				err = errStop
				break
			}
			if kept, err = x.consider(ctx, kept, row); err != nil {
				return err
			}
		}
		if !x.Random {
			slices.SortFunc(kept, func(a, b candidate) int { return a.rank.Compare(b.rank) })
		}
		if len(kept) > want {
			clear(kept[want:])
			kept = kept[:want]
		}
		return err
	}
	err := x.scan(ctx, o, func(n int64, _ uuid.UUID) error {
		if chunk = append(chunk, n); len(chunk) < matchChunk {
			return nil
		}
		return next()
	})
	if err == nil {
		err = next()
	}
	if err != nil && !errors.Is(err, errStop) {
		return nil, err
	}
	var keys []int64
	for _, c := range kept[min(x.Offset, len(kept)):] {
		keys = append(keys, c.n)
	}
	return x.page(ctx, keys)
}

// consider appends a row to the candidates when the filter is true of it.
func (x *query) consider(ctx context.Context, kept []candidate, r *row) ([]candidate, error) {
	var content *storage.Content
	var err error
	loaded := false
	load := func() *storage.Content {
		if !loaded {
			loaded = true
			content, err = x.contents.Content(ctx, r.Content)
		}
		return content
	}
	if !storage.Match(x.undecided, &r.Record, load) || err != nil {
		return kept, err
	}
	if x.SortsByContent() {
		load()
	}
	return append(kept, candidate{r, storage.RankBy(x.Sort, &r.Record, content)}), err
}
