//go:build !race

package journal

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// Records under hold cost no more than others when an erasure chooses once more.
func TestChoosingBesideManyHeldRecords(t *testing.T) {
	b := new(storagetest.Memory)
	j := open(t, b, Options{Dir: t.TempDir()})
	if err := j.Connected(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.nodes.states = map[uuid.UUID]nodeState{j.identity: {FilterKey: make([]byte, filterKeyBytes)}}
	batch := storage.Batch{}
	var held []uuid.UUID
	for range 10_000 {
		r := &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: 1}
		batch.Records = append(batch.Records, r)
		for range 9 { // others came before it
			held = append(held, uuid.New())
		}
		held = append(held, r.ID)
	}
	if err := b.Write(t.Context(), &batch); err != nil {
		t.Fatal(err)
	}
	choose := func(held []uuid.UUID) time.Duration {
		began := time.Now()
		e := Erasure{Org: "acme", Scope: storage.EraseRecord, RequestedAt: 2, Filter: storage.AppendJSON(nil, storage.All{}), Held: held}
		if err := j.erasures.takeLate(t.Context(), &e, nil); err != nil {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	if without, with := choose(nil), choose(held); with > 3*without {
		t.Errorf("choosing beside %d records costs %v, and %v under hold", len(held), without, with)
	}
}
