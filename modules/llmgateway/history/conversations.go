package history

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

// maxAdded bounds the items that one change adds to a conversation, in bytes: a change is one entry of
// the journal.
const maxAdded = 12 << 20

// maxConversation bounds the items of a conversation, in bytes, and maxItems how many there
// are.
const (
	maxConversation = 64 << 20
	maxItems        = 20_000
)

// conversationLocks are held while items are added to a conversation, so that additions at the same time
// keep its bounds together. Conversations share them by a hash.
var conversationLocks [64]sync.Mutex

// lock locks a conversation until unlock.
func (s *Store) lock(id string) (unlock func()) {
	m := &conversationLocks[maphash.String(lockSeed, s.Org+"\x00"+id)%uint64(len(conversationLocks))]
	m.Lock()
	return m.Unlock
}

var lockSeed = maphash.MakeSeed()

// checkRoom returns a 413 if a conversation has no room for the items of a change. to has the size and
// the count of its items.
func checkRoom(to *storage.Conversation, c *storage.ConversationChange) error {
	size := to.Size
	for _, item := range c.Items {
		size += int64(len(item))
	}
	if count := to.Count + len(c.Items); count <= maxItems && size <= maxConversation {
		return nil
	}
	return &plugins.Error{
		Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "conversation_too_large", Param: "conversation",
		Message: fmt.Sprintf("A conversation has at most %d items and %d bytes, and '%s' would have more: delete items, or begin another one.",
			maxItems, maxConversation, c.ID),
	}
}

// extendTimeout bounds how long the end of a response waits for the backend to have it.
const extendTimeout = time.Second

// IsConversation reports whether an id has the form of those of NewConversation. OpenAI's ids are longer.
func IsConversation(id string) bool {
	_, ok := RecordOf(id)
	return ok && strings.HasPrefix(id, conversationPrefix) && len(id) == len(conversationPrefix)+2*len(uuid.UUID{})
}

// Conversation returns a conversation with the items of a page, or ErrNotFound.
func (s *Store) Conversation(ctx context.Context, id string, page storage.ItemPage) (*storage.Conversation, error) {
	c, err := s.Journal.Conversation(ctx, s.Org, id, page)
	switch {
	case errors.Is(err, storage.ErrNoItem):
		return nil, plugins.Invalid("after", "There is no item '%.128s' in this list.", page.After)
	case errors.Is(err, storage.ErrNotFound):
		return nil, ErrNotFound
	case err != nil:
		return nil, unavailable(err)
	case s.User != "" && c.User != s.User:
		return nil, ErrNotFound
	}
	return c, nil
}

// NewConversation creates a conversation with items.
func (s *Store) NewConversation(ctx context.Context, metadata string, items []string) (*storage.Conversation, error) {
	id := uuid.Must(uuid.NewV7())
	c := storage.ConversationChange{ID: conversationPrefix + hex.EncodeToString(id[:]), Created: true, User: s.User, Metadata: metadata, Record: storage.NoCall}
	if err := s.addItems(ctx, &c, &storage.Conversation{}, items); err != nil {
		return nil, err
	}
	return s.apply(ctx, &c, 0)
}

// AddItems adds items to a conversation, and returns the added items in full.
func (s *Store) AddItems(ctx context.Context, to *storage.Conversation, items []string) (added []string, err error) {
	defer s.lock(to.ID)()
	if to, err = s.Conversation(ctx, to.ID, storage.Measured); err != nil {
		return nil, err
	}
	c := storage.ConversationChange{ID: to.ID, Record: storage.NoCall}
	if err := s.addItems(ctx, &c, to, items); err != nil {
		return nil, err
	}
	_, err = s.apply(ctx, &c, to.ChangedAt)
	return c.Items, err
}

// addItems adds items to a change, with their ids and in place of references. to is the conversation, with
// the size and the count of its items.
func (s *Store) addItems(ctx context.Context, c *storage.ConversationChange, to *storage.Conversation, items []string) error {
	items, err := s.Resolve(ctx, items, maxAdded, func(context.Context, int64) error { return nil })
	if err != nil {
		return err
	}
	ids := make(map[string]bool)
	suffix := uuid.Must(uuid.NewV7())
	size := 0
	for i, item := range items {
		param := fmt.Sprintf("items[%d]", i)
		if gjson.Get(item, "type").Str == "item_reference" {
			return plugins.Invalid(param, "Item with id '%.128s' not found.", gjson.Get(item, "id").Str)
		}
		item = complete(item, fmt.Sprintf("%x_%d", suffix[:], i))
		id := gjson.Get(item, "id").Str
		known, err := s.has(ctx, to, id)
		if err != nil {
			return err
		}
		if known || ids[id] {
			return plugins.Invalid(param, "The conversation has an item with id '%.128s'.", id)
		}
		ids[id] = true
		size += len(item)
		c.Add, c.Items = append(c.Add, id), append(c.Items, item)
	}
	if size > maxAdded {
		return plugins.Invalid("items", "The items are over %d bytes long.", maxAdded)
	}
	return checkRoom(to, c)
}

// has reports whether a conversation has an item with an id.
func (s *Store) has(ctx context.Context, c *storage.Conversation, id string) (bool, error) {
	if c.ID == "" { // it does not exist yet
		return false, nil
	}
	found, err := s.Conversation(ctx, c.ID, storage.ItemPage{Limit: 1, Only: id, Measure: true})
	return err == nil && found.Count > 0, err
}

// RemoveItem removes an item from a conversation, or returns ErrNotFound.
func (s *Store) RemoveItem(ctx context.Context, from *storage.Conversation, id string) error {
	switch known, err := s.has(ctx, from, id); {
	case err != nil:
		return err
	case !known:
		return ErrNotFound
	}
	_, err := s.apply(ctx, &storage.ConversationChange{ID: from.ID, Remove: id}, from.ChangedAt)
	return err
}

// ItemsOf returns the items of a conversation.
func ItemsOf(c *storage.Conversation) []string {
	items := make([]string, len(c.Items))
	for i := range c.Items {
		items[i] = c.Items[i].JSON
	}
	return items
}

// SetMetadata replaces the metadata of a conversation.
func (s *Store) SetMetadata(ctx context.Context, of *storage.Conversation, metadata string) (*storage.Conversation, error) {
	return s.apply(ctx, &storage.ConversationChange{ID: of.ID, Metadata: metadata}, of.ChangedAt)
}

// DeleteConversation deletes a conversation and its items. The records of the calls
// that it consisted of stay.
func (s *Store) DeleteConversation(ctx context.Context, c *storage.Conversation) error {
	_, err := s.apply(ctx, &storage.ConversationChange{ID: c.ID, Deleted: true}, c.ChangedAt)
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return err
}

// apply makes a change to a conversation and returns the conversation after it. after is the time of the
// last change before.
func (s *Store) apply(ctx context.Context, c *storage.ConversationChange, after storage.Timestamp) (*storage.Conversation, error) {
	if err := s.appendChange(c, after); err != nil {
		return nil, err
	}
	return s.Conversation(ctx, c.ID, storage.Measured)
}

// appendChange appends a change to the journal, later than the time after. It is ErrNotFound if the
// conversation was erased.
func (s *Store) appendChange(c *storage.ConversationChange, after storage.Timestamp) error {
	at := max(storage.Millis(time.Now()), after+1)
	a := &storage.Annotation{Org: s.Org, At: at, Conversation: c}
	a.MaskContent(s.Mask)
	err := s.Journal.AppendAnnotation(a)
	if errors.Is(err, storage.ErrNotFound) {
		return ErrNotFound
	}
	return err
}

// Extend adds the items of a call, those of its request and of its response, to a conversation, whose last change
// was at after when it was read. It waits until other nodes can read the items; this node can
// at once. It is ErrNotFound if the conversation was deleted or erased meanwhile.
func (s *Store) Extend(ctx context.Context, conversation string, after storage.Timestamp, record uuid.UUID, input, output []string) error {
	c := storage.ConversationChange{ID: conversation, Record: record}
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
	to, err := s.Journal.Conversation(ctx, s.Org, conversation, storage.Measured)
	switch {
	case err == nil:
		err = checkRoom(to, &c)
	case errors.Is(err, storage.ErrNotFound):
		err = ErrNotFound
	case errors.Is(err, storage.ErrUnavailable):
		err = nil // a turn over the bounds is better than none, and the journal keeps it until the backend is back
	}
	if err != nil {
		return err
	}
	if err := s.appendChange(&c, after); err != nil || !s.Journal.Shared() {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, extendTimeout)
	defer cancel()
	_ = s.Journal.Flush(ctx) // if it takes longer, other nodes read the items later
	return nil
}
