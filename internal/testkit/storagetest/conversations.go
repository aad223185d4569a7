package storagetest

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// A conversation has what was added to it, in this order, in its organisation alone,
// until it is removed, deleted or pruned; a batch that comes again changes nothing.
func testConversations(t *testing.T, open opener) {
	s := start(t, open, open.new(t), Contents{})
	later := storage.Timestamp(s.PruneGranularity.Milliseconds()) + 5000
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
				change("acme", 1, created("c")), change("acme", 2, add("c", "1", "2")), change("acme", 3, add("c", "2", "1")), change("globex", 2, created("c")),
				change("acme", 1, created("old")), change("acme", 2, add("old", "1")),
				change("acme", 1, created("gone")), change("acme", 2, add("gone", "1")),
				change("acme", 3, storage.ConversationChange{ID: "gone", Deleted: true}), change("acme", 4, add("gone", "late")),
				change("acme", later, add("c", "0", "3")), change("acme", later, storage.ConversationChange{ID: "c", Remove: "3"}),
				change("acme", later, storage.ConversationChange{ID: "c", Metadata: `{}`}),
			},
			End: end,
		})
	}
	s.reopen(end)
	check := func(org, id string, changed storage.Timestamp, metadata string, items ...string) {
		t.Helper()
		c, err := s.Conversation(t.Context(), org, id, storage.AllItems)
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
		if !slices.Equal(got, items) || c.Metadata != metadata || c.User != "ada" || c.ID != id ||
			c.CreatedAt > epoch+2 || c.ChangedAt != epoch+changed {
			t.Errorf("%s of %s: %+v", id, org, c)
		}
	}
	list := func(org, after string, limit int, want ...string) {
		t.Helper()
		found, err := s.Conversations(t.Context(), org, after, limit)
		var got []string
		for _, c := range found {
			got = append(got, c.ID)
			if one, err := s.Conversation(t.Context(), org, c.ID, storage.AllItems); !reflect.DeepEqual(c, one) {
				t.Errorf("%s of %s is %+v among others, and %+v alone, %v", c.ID, org, c, one, err)
			}
		}
		if !slices.Equal(got, want) || err != nil {
			t.Errorf("%s has the conversations %q, %v, want %q", org, got, err, want)
		}
	}
	check("acme", "c", later, `{}`, "1", "2", "0")
	page := func(p storage.ItemPage, want ...string) {
		t.Helper()
		c, err := s.Conversation(t.Context(), "acme", "c", p)
		if err != nil || c.Metadata != `{}` || c.ChangedAt != epoch+later {
			t.Fatalf("%+v: %+v, %v", p, c, err)
		}
		var got []string
		for _, item := range c.Items {
			got = append(got, item.ID)
			if item.JSON != `{"id":"`+item.ID+`"}` {
				t.Errorf("%+v: item %s is %s", p, item.ID, item.JSON)
			}
		}
		if !slices.Equal(got, want) || c.Count != 0 || c.Size != 0 {
			t.Errorf("%+v: %+v, want the items %q", p, c, want)
		}
		p.Measure = true
		if c, err = s.Conversation(t.Context(), "acme", "c", p); err != nil || c.Count != len(want) || c.Size != int64(len(want)*len(`{"id":"1"}`)) || c.Items != nil {
			t.Errorf("%+v: %+v, %v", p, c, err)
		}
	}
	page(storage.ItemPage{})
	page(storage.ItemPage{Limit: 2}, "1", "2")
	page(storage.ItemPage{Limit: 2, Descending: true}, "0", "2")
	page(storage.ItemPage{Limit: 2, After: "1"}, "2", "0")
	page(storage.ItemPage{Limit: 2, After: "2", Descending: true}, "1")
	page(storage.ItemPage{Limit: 2, After: "0"})
	page(storage.ItemPage{Limit: 2, Only: "2"}, "2")
	page(storage.ItemPage{Limit: 2, Only: "3"})
	if _, err := s.Conversation(t.Context(), "acme", "c", storage.ItemPage{Limit: 1, After: "3"}); !errors.Is(err, storage.ErrNoItem) {
		t.Errorf("after an item that is gone: %v", err)
	}
	check("globex", "c", 2, `{"a":"b"}`)
	check("acme", "gone", 0, "")
	check("acme", "old", 2, `{"a":"b"}`, "1")
	list("acme", "", 10, "c", "old")
	list("acme", "", 1, "c")
	list("acme", "c", 10, "old")
	list("globex", "", 10, "c")
	list("nobody", "", 10)
	if orgs, err := s.Organisations(t.Context()); !slices.Equal(orgs, []string{"acme", "globex"}) || err != nil {
		t.Errorf("the organisations are %q, %v", orgs, err)
	}
	prune := func(spared ...string) {
		t.Helper()
		for more := true; more; {
			var err error
			if more, err = s.PruneConversations(t.Context(), epoch+later-1000, spared); err != nil {
				t.Fatal(err)
			}
		}
	}
	prune("acme", "globex")
	check("acme", "old", 2, `{"a":"b"}`, "1")
	check("globex", "c", 2, `{"a":"b"}`)
	prune("globex")
	check("acme", "c", later, `{}`, "0")
	check("acme", "old", 0, "")
	check("globex", "c", 2, `{"a":"b"}`)
	prune()
	check("acme", "c", later, `{}`, "0")
	check("acme", "old", 0, "")
	check("globex", "c", 0, "")
	list("acme", "", 10, "c")
	list("globex", "", 10)
}

// The items that erased records have added to conversations are gone, and so are conversations in
// which all others were added without a call. All other items stay, also those of which it is not known
// who added them.
func testErasedItems(t *testing.T, open opener) {
	for _, scope := range []storage.ErasureScope{storage.EraseContent, storage.EraseIdentity, storage.EraseRecord} {
		b := open.new(t)
		eraser, ok := b.(storage.RecordEraser)
		if !ok {
			t.Skip("single records cannot be erased")
		}
		records, contents := Records(random(7), 3)
		s := start(t, open, b, contents)
		for _, r := range records {
			r.Org = "acme"
		}
		ada, bob, none, unknown := records[0].ID, records[1].ID, storage.NoCall, uuid.Nil
		batch := Batch(records, storage.Position{Segment: 1})
		add := func(at storage.Timestamp, org, id string, record uuid.UUID, items ...string) {
			c := &storage.ConversationChange{ID: id, Add: items, Items: items, Record: record}
			if at == 0 {
				c.Created, c.User, c.Metadata = true, "ada", "{}"
			}
			batch.Annotations = append(batch.Annotations, &storage.Annotation{Org: org, At: epoch + at, Conversation: c})
		}
		add(0, "acme", "shared", none, "client's")
		add(1, "acme", "shared", ada, "ada's")
		add(2, "acme", "shared", bob, "bob's")
		add(0, "acme", "hers", none, "client's")
		add(1, "acme", "hers", ada, "ada's", "ada's second")
		add(0, "acme", "without calls", none, "client's")
		add(0, "acme", "earlier version's", unknown, "client's", "of anybody")
		add(1, "acme", "earlier version's", ada, "ada's")
		add(0, "acme", "repeated", bob, "bob's")
		add(1, "acme", "repeated", ada, "ada's", "removed", "bob's", "again")
		add(2, "acme", "repeated", bob, "ada's")
		remove := func(at storage.Timestamp, item string) {
			batch.Annotations = append(batch.Annotations, &storage.Annotation{Org: "acme", At: epoch + at, Conversation: &storage.ConversationChange{ID: "repeated", Remove: item}})
		}
		remove(3, "removed")
		remove(3, "again")
		add(4, "acme", "repeated", bob, "again")
		add(0, "globex", "hers", ada, "ada's")
		s.write(batch)
		check := func(org string, counted int64, want map[string][]string) {
			t.Helper()
			n, whole, err := eraser.CountItems(t.Context(), org, []uuid.UUID{ada, id(random(8))})
			if n != counted || err != nil {
				t.Errorf("the record has added %d items, %v, want %d", n, err, counted)
			}
			if counted == 0 && whole != nil || counted > 0 && !slices.Equal(whole, []string{"hers"}) {
				t.Errorf("the conversations %q go as a whole", whole)
			}
			found, err := s.Conversations(t.Context(), org, "", 10)
			got := make(map[string][]string)
			for _, c := range found {
				for _, item := range c.Items {
					got[c.ID] = append(got[c.ID], item.ID)
				}
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %s has %q, %v, want %q", scope, org, got, err, want)
			}
		}
		globex := map[string][]string{"hers": {"ada's"}}
		check("acme", 5, map[string][]string{
			"shared": {"client's", "ada's", "bob's"}, "hers": {"client's", "ada's", "ada's second"}, "without calls": {"client's"},
			"earlier version's": {"client's", "of anybody", "ada's"}, "repeated": {"bob's", "ada's", "again"},
		})
		check("globex", 1, globex)
		for range 2 {
			if err := eraser.EraseRecords(t.Context(), "acme", []uuid.UUID{ada, id(random(8))}, scope); err != nil {
				t.Fatal(err)
			}
			if err := eraser.EraseUnused(t.Context()); err != nil {
				t.Fatal(err)
			}
			check("acme", 0, map[string][]string{"shared": {"client's", "bob's"}, "without calls": {"client's"}, "earlier version's": {"client's", "of anybody"}, "repeated": {"bob's", "again"}})
			check("globex", 1, globex)
			s.reopen(batch.End)
			eraser = s.Backend.(storage.RecordEraser)
		}
	}
}
