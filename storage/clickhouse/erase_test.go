package clickhouse

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// The tag of a session stays if a batch with it and a record of the session is written while the
// session's other records are erased.
func TestTagWrittenDuringErasure(t *testing.T) {
	records, contents := storagetest.Records(rand.New(rand.NewPCG(1, 0)), 2)
	for _, r := range records {
		r.Org, r.SessionID = "acme", "one"
	}
	b := filledWith(t, records[:1], contents)
	tag := func(batch *storage.Batch, at storage.Timestamp, tag string) {
		batch.Annotations = append(batch.Annotations, &storage.Annotation{Org: "acme", SessionID: "one", At: at, Tag: &tag})
		if err := b.Write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	tag(&storage.Batch{ID: "2", End: storage.Position{Segment: 2}}, 1, "silver")
	written := false
	b.trace = func(s string) {
		if !written && strings.HasPrefix(s, "SELECT 1 FROM session_tags ") { // which tags are deleted is decided
			written = true
			batch := storagetest.Batch(records[1:], storage.Position{Segment: 3})
			batch.ID = "3"
			tag(batch, 2, "gold")
		}
	}
	if err := b.EraseRecords(t.Context(), "acme", []uuid.UUID{records[0].ID}, storage.EraseRecord); err != nil {
		t.Fatal(err)
	}
	if got, err := b.SessionTag(t.Context(), "acme", "one"); got != "gold" || !written || err != nil {
		t.Errorf("the tag is %q, %v, want gold", got, err)
	}
}
