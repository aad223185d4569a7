package storagetest

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Nodes read the last state of each, and all that each has erased.
func testNodes(t *testing.T, open opener) {
	b := open.new(t)
	shared, ok := b.(storage.Nodes)
	if !ok {
		t.Skip("one journal writes to the backend")
	}
	s := start(t, open, b, Contents{})
	end := storage.Position{Segment: 1}
	s.write(Batch([]*storage.Record{{ID: uuid.New(), Org: "acme", CreatedAt: storage.Millis(time.Now())}}, end))
	if nodes, err := shared.Nodes(t.Context()); err != nil || len(nodes) != 1 || nodes[journal].State != "" {
		t.Fatalf("of a node without a state: %v, %v", nodes, err)
	}
	other := uuid.New()
	for _, state := range []string{"first", "last"} {
		for _, id := range []uuid.UUID{journal, other} {
			if err := shared.SaveNode(t.Context(), id, state+id.String()); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := [][]byte{{0, 1, 255}, []byte("second"), []byte("third")}
	for i, part := range want {
		for range 2 {
			if err := shared.AddErased(t.Context(), journal, int64(i)+1, part); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := shared.AddErased(t.Context(), journal, int64(len(want))+2, []byte("after one that is missing")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		nodes, err := shared.Nodes(t.Context())
		if err != nil || len(nodes) != 2 {
			t.Fatalf("%v, %v", nodes, err)
		}
		for id, node := range nodes {
			if node.State != "last"+id.String() || node.Age < 0 || node.Age > time.Minute {
				t.Errorf("%s has %+v", id, node)
			}
		}
		for after := range int64(4) {
			if got, err := shared.ErasedBy(t.Context(), journal, after); err != nil || len(got) != len(want)-int(after) || len(got) > 0 && !reflect.DeepEqual(got, want[after:]) {
				t.Errorf("after %d: %q, %v", after, got, err)
			}
		}
		if got, err := shared.ErasedBy(t.Context(), other, 0); len(got) > 0 || err != nil {
			t.Errorf("of another node: %q, %v", got, err)
		}
		s.reopen(end)
	}
}
