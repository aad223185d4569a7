package sqlite

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// A request is found by its user and its property, also when its bucket was deleted by
// retention or begun by a batch that failed.
func TestBucketsOfAllRequestsAreKnown(t *testing.T) {
	b := newBackend(t)
	const first = storage.Timestamp(bucketMilliseconds * 1000)
	const second, third = first + bucketMilliseconds, first + 2*bucketMilliseconds
	record := func(at storage.Timestamp) *storage.Record {
		return &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: at, UserID: "ann", Properties: map[string]string{"a": "b"}}
	}
	found := func(want int) {
		t.Helper()
		for _, f := range []storage.Filter{
			&storage.Leaf{Field: field("user_id"), Text: "ann"},
			&storage.Leaf{Field: field("properties"), Key: "a", Text: "b"},
			&storage.Leaf{Field: field("properties"), Key: "a", Op: storage.Contains, Text: "b"},
		} {
			got, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: f, Limit: 10})
			if err != nil || len(got) != want {
				t.Errorf("%s finds %d records, want %d: %v", storage.AppendJSON(nil, f), len(got), want, err)
			}
		}
	}
	write(t, b, &storage.Batch{Records: []*storage.Record{record(second), record(first)}})
	found(2)
	prune(t, b, second+1)
	found(0)
	write(t, b, &storage.Batch{Records: []*storage.Record{record(first)}})
	found(1)
	failed := errors.New("failed")
	err := b.withWriter(func(w *writer) error {
		return w.transaction(t.Context(), func() error {
			if _, err := w.insert(&row{record: *record(third)}); err != nil {
				return err
			}
			return failed
		})
	})
	if !errors.Is(err, failed) {
		t.Fatal(err)
	}
	write(t, b, &storage.Batch{Records: []*storage.Record{record(third)}})
	found(2)
}
