package history

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest/remote"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

// nodes are stores of two nodes that share a backend, which takes what is written at
// once and shows it after a while.
func nodes(t *testing.T) (a, b *Store, server *remote.Server) {
	path := filepath.Join(t.TempDir(), "s")
	server = remote.NewServer(path, remote.Faults{Latency: 5 * time.Millisecond})
	if err := server.Start(); err != nil {
		t.Skip(err) // a path that is too long for a socket
	}
	t.Cleanup(server.Stop)
	open := func() *Store {
		j, err := journal.Open(t.Context(), remote.New(path), journal.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close(context.Background()) })
		return &Store{Journal: j, Org: "acme"}
	}
	return open(), open(), server
}

// Each node reads at once what the other has changed, in its order, whatever its clock.
func TestAConversationGoesOnAtAnotherNode(t *testing.T) {
	a, b, _ := nodes(t)
	made, err := a.NewConversation(t.Context(), `{}`, []string{`{"id":"msg_1","role":"user","content":"one"}`})
	if err != nil {
		t.Fatal(err)
	}
	read := func(s *Store, want ...string) *storage.Conversation {
		t.Helper()
		c, err := s.Conversation(t.Context(), made.ID, storage.AllItems)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, item := range c.Items {
			ids = append(ids, item.ID)
		}
		if !slices.Equal(ids, want) {
			t.Errorf("the items are %q, want %q", ids, want)
		}
		return c
	}
	turn := func(s *Store, c *storage.Conversation, input, output string) {
		t.Helper()
		err := s.Extend(t.Context(), c.ID, c.ChangedAt, uuid.Must(uuid.NewV7()), []string{`{"role":"user","id":"` + input + `"}`}, []string{`{"id":"` + output + `"}`})
		if err != nil {
			t.Fatal(err)
		}
	}
	turn(b, read(b, "msg_1"), "msg_2", "msg_3")
	c := read(a, "msg_1", "msg_2", "msg_3")
	// A node whose clock is ahead by an hour.
	ahead := storage.Millis(time.Now().Add(time.Hour))
	err = a.Journal.AppendAnnotation(&storage.Annotation{Org: a.Org, At: ahead, Conversation: &storage.ConversationChange{
		ID: c.ID, Add: []string{"msg_4"}, Items: []string{`{"id":"msg_4"}`},
	}})
	if err != nil {
		t.Fatal(err)
	}
	read(a, "msg_1", "msg_2", "msg_3", "msg_4")
	turn(b, read(b, "msg_1", "msg_2", "msg_3", "msg_4"), "msg_5", "msg_6")
	c = read(a, "msg_1", "msg_2", "msg_3", "msg_4", "msg_5", "msg_6")
	if err := b.RemoveItem(t.Context(), c, "msg_4"); err != nil {
		t.Fatal(err)
	}
	c = read(a, "msg_1", "msg_2", "msg_3", "msg_5", "msg_6")
	if err := b.DeleteConversation(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Conversation(t.Context(), c.ID, storage.AllItems); !errors.Is(err, ErrNotFound) {
		t.Errorf("a deleted conversation: %v", err)
	}
}

// A turn that ends while the backend cannot be reached is added once it can.
func TestATurnEndsWithoutTheBackend(t *testing.T) {
	s, _, server := nodes(t)
	c, err := s.NewConversation(t.Context(), `{}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if err := s.Extend(t.Context(), c.ID, c.ChangedAt, uuid.Must(uuid.NewV7()), []string{`{"role":"user"}`}, []string{`{"id":"msg_1"}`}); err != nil {
		t.Error(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	if err := s.Journal.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c, err = s.Conversation(t.Context(), c.ID, storage.Measured); err != nil || c.Count != 2 {
		t.Errorf("%+v, %v", c, err)
	}
}
