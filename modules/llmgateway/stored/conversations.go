package stored

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"strings"
	"sync"
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

// MaxConversation bounds the items of a conversation, in bytes, and maxItems how many there
// are.
const (
	MaxConversation = 64 << 20
	maxItems        = 20_000
)

// adding serializes what is added to a conversation: its bounds hold for what it has then.
var adding [64]sync.Mutex

// lock locks a conversation until unlock.
func (s *Store) lock(id string) (unlock func()) {
	m := &adding[maphash.String(lockSeed, s.Org+"\x00"+id)%uint64(len(adding))]
	m.Lock()
	return m.Unlock
}

var lockSeed = maphash.MakeSeed()

// fits returns a 413 if a conversation has no room for what a change adds.
func fits(known []storage.ConversationItem, c *storage.ConversationChange) error {
	size := 0
	for _, item := range known {
		size += len(item.JSON)
	}
	for _, item := range c.Items {
		size += len(item)
	}
	if count := len(known) + len(c.Items); count <= maxItems && size <= MaxConversation {
		return nil
	}
	return &plugins.Error{
		Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "conversation_too_large", Param: "conversation",
		Message: fmt.Sprintf("A conversation has at most %d items and %d bytes, and '%s' would have more: delete items, or begin another one.",
			maxItems, MaxConversation, c.ID),
	}
}

// extendTimeout bounds how long the end of a response waits for the backend to have it.
const extendTimeout = time.Second

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
	if err := s.add(ctx, &c, nil, items); err != nil {
		return nil, err
	}
	return s.changed(ctx, &c, 0)
}

// AddItems adds items to a conversation, and returns those that it has then of them.
func (s *Store) AddItems(ctx context.Context, to *storage.Conversation, items []string) (added []string, err error) {
	defer s.lock(to.ID)()
	if to, err = s.Conversation(ctx, to.ID); err != nil {
		return nil, err
	}
	c := storage.ConversationChange{ID: to.ID}
	if err := s.add(ctx, &c, to.Items, items); err != nil {
		return nil, err
	}
	_, err = s.changed(ctx, &c, to.ChangedAt)
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
	return fits(known, c)
}

// RemoveItem removes an item from a conversation, or returns ErrNotFound.
func (s *Store) RemoveItem(ctx context.Context, from *storage.Conversation, id string) error {
	if _, err := ItemOf(from, id); err != nil {
		return err
	}
	_, err := s.changed(ctx, &storage.ConversationChange{ID: from.ID, Remove: id}, from.ChangedAt)
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
func (s *Store) SetMetadata(ctx context.Context, of *storage.Conversation, metadata string) (*storage.Conversation, error) {
	return s.changed(ctx, &storage.ConversationChange{ID: of.ID, Metadata: metadata}, of.ChangedAt)
}

// DeleteConversation deletes a conversation and its items. The records of the calls
// that it consisted of stay.
func (s *Store) DeleteConversation(ctx context.Context, c *storage.Conversation) error {
	_, err := s.changed(ctx, &storage.ConversationChange{ID: c.ID, Deleted: true}, c.ChangedAt)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return err
}

// changed changes a conversation that was read when its last change was that of after,
// and returns what it is then.
func (s *Store) changed(ctx context.Context, c *storage.ConversationChange, after storage.Timestamp) (*storage.Conversation, error) {
	if err := s.change(c, after); err != nil {
		return nil, err
	}
	return s.Conversation(ctx, c.ID)
}

func (s *Store) change(c *storage.ConversationChange, after storage.Timestamp) error {
	at := max(storage.Millis(time.Now()), after+1)
	return s.Journal.AppendAnnotation(&storage.Annotation{Org: s.Org, At: at, Conversation: c})
}

// Extend adds a turn to a conversation, which was read when its last change was that of
// after: the items of the request that record is of, and those of its response. It waits
// until other nodes can read them; at the same node, whoever reads does.
func (s *Store) Extend(ctx context.Context, conversation string, after storage.Timestamp, record uuid.UUID, input, output []string) error {
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
	defer s.lock(conversation)()
	to, err := s.Conversation(ctx, conversation)
	if err != nil {
		return err
	}
	if err := fits(to.Items, &c); err != nil {
		return err
	}
	if err := s.change(&c, after); err != nil || !s.Journal.Shared() {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, extendTimeout)
	defer cancel()
	_ = s.Journal.Flush(ctx) // later, the turn is there all the same
	return nil
}
