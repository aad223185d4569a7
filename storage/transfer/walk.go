package transfer

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// pageRecords is how many records are read at a time.
const pageRecords = 1024

// walk reads the records of an organisation in the order of their times and ids, which
// is the same in all stores.
type walk struct {
	backend  storage.Backend
	query    storage.RequestQuery
	contents storage.ContentReader
	page     []*storage.Record
	last     bool // the page is
	// turned is called when a page was read to its end.
	turned func()
}

func newWalk(j *journal.Journal, org string, w storage.Window) *walk {
	return &walk{backend: j.Backend(), contents: j.Contents().Reader(storage.WholeContent), query: storage.RequestQuery{
		Org: org, Filter: within(w), Sort: []storage.Sort{{Key: storage.SortCreatedAt}}, Limit: pageRecords,
	}}
}

// within chooses the records of a window.
func within(w storage.Window) storage.Filter {
	filter := storage.Filter(storage.All{})
	bound := func(op storage.Operator, at storage.Timestamp) {
		created := storage.LookupField(storage.RequestResponse, "request_created_at")
		filter = storage.And(filter, &storage.Leaf{Field: created, Op: op, Time: at})
	}
	if w.From != storage.Always.From {
		bound(storage.GTE, w.From)
	}
	if w.To != storage.Always.To {
		bound(storage.LTE, w.To)
	}
	return filter
}

func (w *walk) close() { w.contents.Close() }

// peek is the next record, nil behind the last one. It stays the next until skip.
func (w *walk) peek(ctx context.Context) (*storage.Record, error) {
	if len(w.page) > 0 {
		return w.page[0], nil
	}
	if w.last {
		return nil, nil
	}
	if w.turned != nil && w.query.After != nil {
		w.turned()
	}
	page, err := available(ctx, func() ([]*storage.Record, error) { return w.backend.Requests(ctx, &w.query) })
	if err != nil {
		return nil, err
	}
	w.page, w.last = page, len(page) < w.query.Limit
	if len(page) == 0 {
		return nil, nil
	}
	w.query.After = w.query.Cursor(page[len(page)-1], nil)
	if p, ok := w.contents.(storage.Prefetcher); ok {
		p.Prefetch(slices.Clone(page))
	}
	return page[0], nil
}

// content is that of a record which was read last.
func (w *walk) content(ctx context.Context, r *storage.Record) (*storage.Content, error) {
	return available(ctx, func() (*storage.Content, error) { return w.contents.Content(ctx, r) })
}

func (w *walk) skip() { w.page = w.page[1:] }

// find is the record with the key of r, nil if there is none. What comes before is
// passed, and given to passed.
func (w *walk) find(ctx context.Context, r *storage.Record, passed func(*storage.Record)) (*storage.Record, error) {
	for {
		next, err := w.peek(ctx)
		if next == nil || err != nil {
			return nil, err
		}
		order := cmp.Or(cmp.Compare(next.CreatedAt, r.CreatedAt), bytes.Compare(next.ID[:], r.ID[:]))
		if order > 0 {
			return nil, nil
		}
		w.skip()
		if order == 0 {
			return next, nil
		}
		if passed != nil {
			passed(next)
		}
	}
}

// sameCall tells whether two records are the same but for what was learned later, and
// where their bodies are.
func sameCall(a, b *storage.Record) bool {
	x, y := *a, *b
	for _, r := range []*storage.Record{&x, &y} {
		r.Properties, r.Scores, r.Feedback, r.Assets = nil, nil, nil, nil
		r.UpdatedAt, r.Content, r.Version, r.Number = 0, storage.ContentRef{}, storage.Position{}, 0
	}
	return slices.Equal(a.Assets, b.Assets) && reflect.DeepEqual(&x, &y)
}

// sameAnnotations tells whether the same was learned of two records.
func sameAnnotations(a, b *storage.Record) bool {
	return maps.Equal(a.Scores, b.Scores) && maps.Equal(a.Properties, b.Properties) && reflect.DeepEqual(a.Feedback, b.Feedback)
}
