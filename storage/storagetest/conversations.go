package storagetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/weirhq/weir/storage"
)

// A conversation has what was added to it, in this order, in its organisation alone,
// until it is removed, deleted or pruned; a batch that comes again changes nothing.
func testConversations(t *testing.T, open opener) {
	s := start(t, open, open.new(t), Contents{})
	if _, ok := s.Backend.(storage.ConversationKeeper); !ok {
		t.Skip("the backend keeps no conversations")
	}
	change := func(org string, at storage.Timestamp, c storage.ConversationChange) *storage.Annotation {
		return &storage.Annotation{Org: org, At: epoch + at, Conversation: &c}
	}
	created := func(id string) storage.ConversationChange {
		return storage.ConversationChange{ID: id, Created: true, User: "ada", Metadata: `{"a":"b"}`}
	}
	add := func(id string, items ...string) storage.ConversationChange {
		c := storage.ConversationChange{ID: id, Add: items}
		for _, item := range items {
			c.Items = append(c.Items, `{"id":"`+item+`"}`)
		}
		return c
	}
	end := storage.Position{Segment: 1, Ordinal: 12}
	for range 2 {
		s.write(&storage.Batch{
			Annotations: []*storage.Annotation{
				change("acme", 1, created("c")), change("acme", 2, add("c", "1", "2")), change("globex", 2, created("c")),
				change("acme", 1, created("old")), change("acme", 2, add("old", "1")),
				change("acme", 1, created("gone")), change("acme", 2, add("gone", "1")),
				change("acme", 3, storage.ConversationChange{ID: "gone", Deleted: true}), change("acme", 4, add("gone", "late")),
				change("acme", 5000, add("c", "0", "2", "3")), change("acme", 5000, storage.ConversationChange{ID: "c", Remove: "3"}),
				change("acme", 5000, storage.ConversationChange{ID: "c", Metadata: `{}`}),
			},
			End: end,
		})
	}
	s.reopen(end)
	keeper := s.Backend.(storage.ConversationKeeper)
	check := func(org, id string, metadata string, items ...string) {
		t.Helper()
		c, err := keeper.Conversation(t.Context(), org, id)
		if metadata == "" {
			if !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("%s of %s: %+v, %v", id, org, c, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range c.Items {
			got = append(got, item.ID)
			if item.JSON != `{"id":"`+item.ID+`"}` {
				t.Errorf("item %s is %s", item.ID, item.JSON)
			}
		}
		if !slices.Equal(got, items) || c.Metadata != metadata || c.User != "ada" || c.ID != id {
			t.Errorf("%s of %s: %+v", id, org, c)
		}
	}
	check("acme", "c", `{}`, "1", "2", "0")
	check("globex", "c", `{"a":"b"}`)
	check("acme", "gone", "")
	check("acme", "old", `{"a":"b"}`, "1")
	for more := true; more; {
		var err error
		if more, err = keeper.PruneConversations(t.Context(), epoch+1000); err != nil {
			t.Fatal(err)
		}
	}
	check("acme", "c", `{}`, "0")
	check("acme", "old", "")
	check("globex", "c", "")
}
