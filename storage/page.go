package storage

import (
	"math"
	"math/rand/v2"
	"slices"
)

// ByTime reports whether the query sorts by created_at alone.
func (q *RequestQuery) ByTime() (desc, ok bool) {
	sorts := q.order()
	return sorts[0].Desc, !q.Random && len(sorts) == 1 && sorts[0].Key == SortCreatedAt
}

// Page gets the records that a query chooses, one after the other, and keeps the records of
// the query's page.
type Page[T any] struct {
	query  *RequestQuery
	cancel *CancelCheck
	// want is how many records there are until the end of the page.
	want, seen int
	items      []placed[T]
}

// placed is the item that stands for a record, with the place of the record.
type placed[T any] struct {
	of    T
	at    Timestamp
	place *Cursor[SortKey]
}

// sortedLess is how many records more than wanted are kept before they are put into order.
const sortedLess = 256

// NewPage returns the page of a query. The page is worth nothing when the query of cancel is
// over.
func NewPage[T any](q *RequestQuery, cancel *CancelCheck) *Page[T] {
	return &Page[T]{query: q, cancel: cancel, want: q.Offset + min(q.Limit, math.MaxInt-q.Offset)}
}

// Full reports whether there are as many records as the page needs.
func (p *Page[T]) Full() bool { return len(p.items) >= p.want }

// Done reports whether no record of this time, and no later record, can be on the page.
// The records come in the order of time if the query sorts by time.
func (p *Page[T]) Done(at Timestamp) bool {
	_, byTime := p.query.ByTime()
	return p.Full() && byTime && at != p.items[p.want-1].at
}

// Add adds a record. of is the item that stands for the record. content is needed if the query
// sorts by content.
func (p *Page[T]) Add(r *Record, content *Content, of T) {
	next := placed[T]{of: of, at: r.CreatedAt}
	if p.query.Random {
		if p.seen++; !p.Full() {
			p.items = append(p.items, next)
		} else if i := rand.IntN(p.seen); i < p.want {
			p.items[i] = next
		}
		return
	}
	if next.place = p.query.Cursor(r, content); p.query.After != nil && next.place.Compare(p.query.After) <= 0 {
		return
	}
	if p.items = append(p.items, next); len(p.items)-p.want >= max(p.want, sortedLess) {
		p.sort()
	}
}

// sort puts the records into order, and forgets the records after the page.
func (p *Page[T]) sort() {
	slices.SortFunc(p.items, CancellableOrder(p.cancel, func(a, b placed[T]) int { return a.place.Compare(b.place) }))
	if len(p.items) > p.want {
		clear(p.items[p.want:])
		p.items = p.items[:p.want]
	}
}

// Items are what stands for the records of the page, in its order.
func (p *Page[T]) Items() (items []T) {
	if p.query.Random {
		rand.Shuffle(len(p.items), func(i, j int) { p.items[i], p.items[j] = p.items[j], p.items[i] })
	} else {
		p.sort()
	}
	for _, k := range p.items[min(p.query.Offset, len(p.items)):] {
		items = append(items, k.of)
	}
	return items
}
