package clickhouse

import (
	"errors"
	"fmt"
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

// What another node adds to a conversation that is erased as a whole at that moment is read by nobody,
// and goes with what the conversation had.
func TestConversationWrittenDuringErasure(t *testing.T) {
	records, contents := storagetest.Records(rand.New(rand.NewPCG(1, 0)), 1)
	records[0].Org = "acme"
	b := filledWith(t, records, contents)
	batches := uint64(1)
	write := func(at storage.Timestamp, record uuid.UUID, item string) {
		batches++
		c := &storage.ConversationChange{ID: "hers", Created: at == 1, Add: []string{item}, Items: []string{item}, Record: record}
		batch := &storage.Batch{ID: fmt.Sprint(batches), End: storage.Position{Segment: batches}, Annotations: []*storage.Annotation{{Org: "acme", At: at, Conversation: c}}}
		if err := b.Write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	write(1, storage.NoCall, "the client's")
	write(2, records[0].ID, "hers")
	written := false
	b.trace = func(s string) {
		if !written && strings.HasPrefix(s, "SELECT 1 FROM conversation_changes ") { // that it goes is decided
			written = true
			write(3, uuid.New(), "another's")
		}
	}
	if err := b.EraseRecords(t.Context(), "acme", []uuid.UUID{records[0].ID}, storage.EraseContent); err != nil {
		t.Fatal(err)
	}
	b.trace = nil
	write(1, storage.NoCall, "the client's again")
	write(4, storage.NoCall, "the client's second")
	if c, err := b.Conversation(t.Context(), "acme", "hers", storage.AllItems); !errors.Is(err, storage.ErrNotFound) || !written {
		t.Errorf("the conversation is %+v, %v", c, err)
	}
	if more, err := b.Erase(t.Context()); more || err != nil {
		t.Fatal(more, err)
	}
	var rows, texts uint64
	if err := b.conn.QueryRow(t.Context(), "SELECT count(), countIf(value != '') FROM conversation_changes WHERE org != ''").Scan(&rows, &texts); rows != 1 || texts > 0 || err != nil {
		t.Errorf("%d rows are left, %d of them with a text, %v; want one, that it is deleted", rows, texts, err)
	}
}
