package sqlite

import (
	"fmt"
	"testing"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/storagetest"
)

func TestPruneDeletesTheTagsOfSessions(t *testing.T) {
	b := newBackend(t)
	tag := "prod"
	for at, session := range []string{"old", "new"} {
		write(t, b, &storage.Batch{Annotations: []*storage.Annotation{{Org: "acme", SessionID: session, Tag: &tag, At: storage.Timestamp(1000 * at)}}})
	}
	if _, err := b.Prune(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	for session, want := range map[string]string{"old": "", "new": tag} {
		if got, err := b.SessionTag(t.Context(), "acme", session); err != nil || got != want {
			t.Errorf("the tag of %s is %q, want %q: %v", session, got, want, err)
		}
	}
}

// However much is old, one call keeps batches waiting no longer than it takes to
// delete a chunk of it.
func TestPruneIsBounded(t *testing.T) {
	chunk := pruneChunk
	pruneChunk = 10
	t.Cleanup(func() { pruneChunk = chunk })
	b := newBackend(t)
	records, _ := storagetest.Records(newTraffic(1).r, 25)
	batch := storagetest.Batch(records, storage.Position{Segment: 1})
	tag := "prod"
	for i := range 25 {
		batch.Annotations = append(batch.Annotations, &storage.Annotation{Org: "acme", SessionID: fmt.Sprint(i), Tag: &tag, At: 1})
	}
	write(t, b, batch)
	tables := []string{"requests", "session_tags", "names"}
	before := make(map[string]int64)
	for more := true; more; {
		for _, table := range tables {
			before[table] = number(t, b, "SELECT count(*) FROM "+table)
		}
		var err error
		if more, err = b.Prune(t.Context(), records[0].CreatedAt<<1); err != nil {
			t.Fatal(err)
		}
		for _, table := range tables {
			if n := before[table] - number(t, b, "SELECT count(*) FROM "+table); n > 10 {
				t.Errorf("one call deletes %d rows of %s", n, table)
			}
		}
	}
	for _, table := range tables {
		if n := number(t, b, "SELECT count(*) FROM "+table); n > 0 {
			t.Errorf("%d rows of %s are left", n, table)
		}
	}
}
