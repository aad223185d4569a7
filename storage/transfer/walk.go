package transfer

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"reflect"
	"slices"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// pageRecords is how many records are read at a time. A backend reads more rows than it returns:
// with small pages, the excess is many times as much.
const pageRecords = 4000

// walk iterates over the records of an organisation by time and id, and reads their content.
type walk struct {
	*pages[storage.Record]
	contents storage.ContentReader
}

func newWalk(ctx context.Context, j *journal.Journal, org string, window storage.Window) *walk {
	q := &storage.RequestQuery{Org: org, Filter: windowFilter(window), Sort: []storage.Sort{{Key: storage.SortCreatedAt}}, Limit: pageRecords}
	w := &walk{contents: j.Contents().Reader(storage.WholeContent)}
	w.pages = readPages(ctx, walkOrder, func(ctx context.Context) ([]*storage.Record, bool, error) {
		records, err := j.Backend().Requests(ctx, q)
		if len(records) > 0 {
			q.After = q.Cursor(records[len(records)-1], nil)
		}
		return records, len(records) == q.Limit, err
	})
	if p, ok := w.contents.(storage.Prefetcher); ok {
		w.turn = p.Prefetch
	}
	return w
}

// walkOrder compares two records by their time and id.
func walkOrder(a, b *storage.Record) int {
	return cmp.Or(cmp.Compare(a.CreatedAt, b.CreatedAt), bytes.Compare(a.ID[:], b.ID[:]))
}

// windowFilter returns the filter of the records in a window.
func windowFilter(w storage.Window) storage.Filter {
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

func (w *walk) close() {
	w.pages.close()
	w.contents.Close()
}

// content returns the content of r, the record that was read last, after omission; nil if r has
// none.
func (w *walk) content(ctx context.Context, r *storage.Record) (*storage.Kept, error) {
	content, err := available(ctx, func() (*storage.Content, error) { return w.contents.Content(ctx, r) })
	if content == nil || err != nil {
		return nil, err
	}
	return storage.Keep(r, *content, math.MaxInt64), nil
}

// sameCall reports whether two records are equal except for their annotations and versions, and
// for the places of their bodies.
func sameCall(a, b *storage.Record) bool {
	x := *a
	x.Properties, x.Scores, x.Feedback, x.Assets = b.Properties, b.Scores, b.Feedback, b.Assets
	x.UpdatedAt, x.Content, x.Version, x.Number = b.UpdatedAt, b.Content, b.Version, b.Number
	return slices.Equal(a.Assets, b.Assets) && reflect.DeepEqual(&x, b)
}

// sameAnnotations reports whether two records have equal annotations.
func sameAnnotations(a, b *storage.Record) bool {
	return maps.Equal(a.Scores, b.Scores) && maps.Equal(a.Properties, b.Properties) && reflect.DeepEqual(a.Feedback, b.Feedback)
}
