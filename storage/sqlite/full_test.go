package sqlite

import (
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// A client whose clock stands still must not stop the store: what a millisecond has
// no number for goes to the next one.
func TestAFullMillisecondSpillsIntoTheNext(t *testing.T) {
	b := newBackend(t)
	const at = storage.Timestamp(1_700_000_000_000)
	record := func() *storage.Record {
		return &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: at, Properties: map[string]string{"a": "b"}}
	}
	first := record()
	write(t, b, &storage.Batch{Records: []*storage.Record{first}})
	for _, table := range []string{"requests", "details", "labels"} {
		if _, err := b.writer.c.exec("UPDATE "+table+" SET n = ?", columnar.FirstKey(at)|columnar.Sequence); err != nil {
			t.Fatal(err)
		}
	}
	records := []*storage.Record{first}
	for range 3 {
		r := record()
		write(t, b, &storage.Batch{Records: []*storage.Record{r}})
		records = append(records, r)
	}
	for _, r := range records { // each again, as a later version
		again := *r
		again.Model = "m"
		write(t, b, &storage.Batch{Records: []*storage.Record{&again}})
		got, err := b.Request(t.Context(), r.Key())
		if err != nil {
			t.Fatal(err)
		}
		if got.Model != "m" || got.CreatedAt < at || got.CreatedAt > at+1 {
			t.Errorf("the record has model %q and was created at %d, want %d", got.Model, got.CreatedAt, at)
		}
	}
	found, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "acme", Limit: 10})
	if err != nil || len(found) != len(records) {
		t.Errorf("%d records are found, want %d: %v", len(found), len(records), err)
	}
}
