package stored

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

const conversationPrefix = "conv_"

// maxAdded bounds the items that a conversation gets at a time, in bytes: an entry of
// the journal has room for them.
const maxAdded = 12 << 20

// IsConversation reports whether an id is one that NewConversation makes. OpenAI's are
// longer.
func IsConversation(id string) bool {
	_, ok := RecordOf(id)
	return ok && strings.HasPrefix(id, conversationPrefix) && len(id) == len(conversationPrefix)+2*len(uuid.UUID{})
}

// Conversation returns a conversation, or ErrNotFound.
func (s *Store) Conversation(ctx context.Context, id string) (*storage.Conversation, error) {
	c, err := s.Journal.Conversation(ctx, s.Org, id)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil, &plugins.Error{
			Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "unsupported_endpoint",
			Message: "The store of this gateway is shared by several nodes and keeps no conversations. " +
				"Use 'previous_response_id', or let the gateway have a store of the kind sqlite.",
		}
	case errors.Is(err, storage.ErrNotFound):
		return nil, ErrNotFound
	case err != nil:
		return nil, unavailable(err)
	case s.User != "" && c.User != s.User:
		return nil, ErrNotFound
	}
	return c, nil
}

// NewConversation makes a conversation of items.
func (s *Store) NewConversation(ctx context.Context, metadata string, items []string) (*storage.Conversation, error) {
	id := uuid.Must(uuid.NewV7())
	c := storage.ConversationChange{ID: conversationPrefix + hex.EncodeToString(id[:]), Created: true, User: s.User, Metadata: metadata}
	if _, err := s.Conversation(ctx, c.ID); !errors.Is(err, ErrNotFound) { // no store that has none is given any
		return nil, err
	}
	if err := s.add(ctx, &c, nil, items); err != nil {
		return nil, err
	}
	return s.changed(ctx, &c)
}

// AddItems adds items to a conversation, and returns those that it has then of them.
func (s *Store) AddItems(ctx context.Context, to *storage.Conversation, items []string) (added []string, err error) {
	c := storage.ConversationChange{ID: to.ID}
	if err := s.add(ctx, &c, to.Items, items); err != nil {
		return nil, err
	}
	_, err = s.changed(ctx, &c)
	return c.Items, err
}

// add gives the change the items in full.
func (s *Store) add(ctx context.Context, c *storage.ConversationChange, known []storage.ConversationItem, items []string) error {
	items, err := s.Resolve(ctx, items)
	if err != nil {
		return err
	}
	ids := make(map[string]bool)
	for _, item := range known {
		ids[item.ID] = true
	}
	suffix := uuid.Must(uuid.NewV7())
	size := 0
	for i, item := range items {
		param := fmt.Sprintf("items[%d]", i)
		if gjson.Get(item, "type").Str == "item_reference" {
			return plugins.Invalid(param, "Item with id '%.128s' not found.", gjson.Get(item, "id").Str)
		}
		item = complete(item, fmt.Sprintf("%x_%d", suffix[:], i))
		id := gjson.Get(item, "id").Str
		if ids[id] {
			return plugins.Invalid(param, "The conversation has an item with id '%.128s'.", id)
		}
		ids[id] = true
		size += len(item)
		c.Add, c.Items = append(c.Add, id), append(c.Items, item)
	}
	if size > maxAdded {
		return plugins.Invalid("items", "The items are over %d bytes long.", maxAdded)
	}
	return nil
}

// RemoveItem removes an item from a conversation, or returns ErrNotFound.
func (s *Store) RemoveItem(ctx context.Context, from *storage.Conversation, id string) error {
	if _, err := ItemOf(from, id); err != nil {
		return err
	}
	_, err := s.changed(ctx, &storage.ConversationChange{ID: from.ID, Remove: id})
	return err
}

// ItemOf returns an item of a conversation, or ErrNotFound.
func ItemOf(c *storage.Conversation, id string) (string, error) {
	for _, item := range c.Items {
		if item.ID == id {
			return item.JSON, nil
		}
	}
	return "", ErrNotFound
}

// ItemsOf are the items of a conversation.
func ItemsOf(c *storage.Conversation) []string {
	items := make([]string, len(c.Items))
	for i := range c.Items {
		items[i] = c.Items[i].JSON
	}
	return items
}

// SetMetadata replaces the metadata of a conversation.
func (s *Store) SetMetadata(ctx context.Context, id, metadata string) (*storage.Conversation, error) {
	return s.changed(ctx, &storage.ConversationChange{ID: id, Metadata: metadata})
}

// DeleteConversation deletes a conversation and its items. The records of the calls
// that it consisted of stay.
func (s *Store) DeleteConversation(ctx context.Context, id string) error {
	_, err := s.changed(ctx, &storage.ConversationChange{ID: id, Deleted: true})
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return err
}

// changed changes a conversation, and returns what it is then.
func (s *Store) changed(ctx context.Context, c *storage.ConversationChange) (*storage.Conversation, error) {
	if err := s.change(c); err != nil {
		return nil, err
	}
	return s.Conversation(ctx, c.ID)
}

func (s *Store) change(c *storage.ConversationChange) error {
	return s.Journal.AppendAnnotation(&storage.Annotation{Org: s.Org, At: storage.Millis(time.Now()), Conversation: c})
}

// Extend adds a turn to a conversation: the items of the request that record is of, and
// those of its response. It does not wait until they can be read: whoever reads does.
func (s *Store) Extend(conversation string, record uuid.UUID, input, output []string) error {
	c := storage.ConversationChange{ID: conversation}
	size := 0
	for i, item := range append(Completed(input, hex.EncodeToString(record[:])), output...) {
		id := gjson.Get(item, "id").Str
		if id == "" {
			item = complete(item, fmt.Sprintf("%x_%d", record[:], i))
			id = gjson.Get(item, "id").Str
		}
		size += len(item)
		c.Add, c.Items = append(c.Add, id), append(c.Items, item)
	}
	if size > maxAdded {
		return fmt.Errorf("the turn has %d bytes, and a conversation takes %d at a time", size, maxAdded)
	}
	return s.change(&c)
}
