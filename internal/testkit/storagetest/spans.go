package storagetest

import (
	"testing"

	"github.com/weirhq/weir/storage"
)

// Calls that were reported are found by their span keys, many at once, only in their
// organisation. A later version of a record adds its keys.
func testSpans(t *testing.T, open opener) {
	records, contents := Records(random(31), 4)
	s := start(t, open, open.new(t), contents)
	finder, ok := s.Backend.(storage.SpanFinder)
	if !ok {
		t.Skip("the backend finds no spans")
	}
	for i, r := range records {
		r.Org, r.CreatedAt, r.SpanKeys = "acme", epoch+storage.Timestamp(i), []string{"own " + r.ID.String(), "both"}
	}
	records[3].Org = "globex"
	s.write(Batch(records, storage.Position{Segment: 1}))
	later := *records[0]
	later.SpanKeys = []string{"more"}
	s.write(Batch([]*storage.Record{&later}, storage.Position{Segment: 2}))

	var keys []storage.SpanKey
	for _, key := range []string{"both", "more", "own " + records[0].ID.String(), "own " + records[3].ID.String(), "it's none"} {
		keys = append(keys, storage.SpanKey{Key: key, From: epoch - 1000, Until: epoch + 1000})
	}
	found, err := finder.Spans(t.Context(), "acme", keys)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"both": 3, "more": 1, "own " + records[0].ID.String(): 1, "own " + records[3].ID.String(): 0, "it's none": 0} {
		if len(found[key]) != want {
			t.Errorf("%s: %v, want %d", key, found[key], want)
		}
	}
	if more := found["more"]; len(more) == 1 && more[0] != records[0].Key() {
		t.Errorf("the key of a later version finds %v", more)
	}
}
