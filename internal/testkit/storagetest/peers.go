package storagetest

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Journals read what each has said last, and the whole list of what each has erased.
func testPeers(t *testing.T, open opener) {
	b := open.new(t)
	peers, ok := b.(storage.Peers)
	if !ok {
		t.Skip("one journal writes to the backend")
	}
	s := start(t, open, b, Contents{})
	end := storage.Position{Segment: 1}
	s.write(Batch([]*storage.Record{{ID: uuid.New(), Org: "acme", CreatedAt: storage.Millis(time.Now())}}, end))
	if notes, err := peers.Notes(t.Context()); err != nil || len(notes) != 1 || notes[journal].Text != "" {
		t.Fatalf("of a journal without a note: %v, %v", notes, err)
	}
	other := uuid.New()
	for _, text := range []string{"first", "last"} {
		for _, id := range []uuid.UUID{journal, other} {
			if err := peers.LeaveNote(t.Context(), id, text+id.String()); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := [][]byte{{0, 1, 255}, []byte("second"), []byte("third")}
	for i, entry := range want {
		for range 2 {
			if err := peers.AddErased(t.Context(), journal, int64(i)+1, entry); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := peers.AddErased(t.Context(), journal, int64(len(want))+2, []byte("after one that is missing")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		notes, err := peers.Notes(t.Context())
		if err != nil || len(notes) != 2 {
			t.Fatalf("%v, %v", notes, err)
		}
		for id, note := range notes {
			if note.Text != "last"+id.String() || note.Age < 0 || note.Age > time.Minute {
				t.Errorf("%s says %+v", id, note)
			}
		}
		for after := range int64(4) {
			if got, err := peers.ErasedBy(t.Context(), journal, after); err != nil || len(got) != len(want)-int(after) || len(got) > 0 && !reflect.DeepEqual(got, want[after:]) {
				t.Errorf("after %d: %q, %v", after, got, err)
			}
		}
		if got, err := peers.ErasedBy(t.Context(), other, 0); len(got) > 0 || err != nil {
			t.Errorf("of another journal: %q, %v", got, err)
		}
		s.reopen(end)
	}
}
