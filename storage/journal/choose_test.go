package journal

import (
	"context"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// A record under hold that is recorded while an erasure chooses is not chosen, whenever it comes.
func TestARecordThatComesLateStaysUnderHold(t *testing.T) {
	for after := range 4 { // queries
		queries := 0
		late := &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: 1, UserID: "held"}
		b := new(storagetest.Memory)
		j := open(t, b, Options{Dir: t.TempDir()})
		b.Refresh = func(ctx context.Context) error {
			if queries++; queries != after+1 {
				return nil
			}
			return b.Write(ctx, &storage.Batch{Records: []*storage.Record{late}})
		}
		e := Erasure{Org: "acme", Scope: storage.EraseRecord, RequestedAt: 2}
		hold := Hold{ID: "hold", Org: "acme", Filter: &storage.Leaf{Field: storage.LookupField(storage.RequestResponse, "user_id"), Op: storage.Equals, Text: "held"}}
		chosen, err := j.Choose(t.Context(), &e, storage.All{}, []Hold{hold})
		if err != nil {
			t.Fatal(err)
		}
		if len(chosen) > 0 || len(e.Held) > 0 && !slices.Equal(e.Holds, []string{"hold"}) {
			t.Errorf("after %d queries, %v is chosen, and %v is held by %v", after, chosen, e.Held, e.Holds)
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
