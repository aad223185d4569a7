package storage

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/google/uuid"
)

// Conversations are the part of a Backend that keeps the conversations of the Responses
// API. They consist of content, and are pruned as content is.
type Conversations interface {
	// Conversation returns a conversation with the items that a page chooses, or ErrNotFound.
	// If there is no item After which the page begins, the error is ErrNoItem.
	Conversation(ctx context.Context, org, id string, page ItemPage) (*Conversation, error)
	// Conversations returns up to limit conversations of an organisation, with their items:
	// those whose ids come after the id after, in the order of the bytes of ids.
	Conversations(ctx context.Context, org, after string, limit int) ([]*Conversation, error)
	// PruneConversations is Prune for the items of conversations, and for
	// conversations that nothing has changed since, but not for those of spared organisations.
	PruneConversations(ctx context.Context, before Timestamp, spared []string) (more bool, err error)
}

// ErrNoItem means that a page begins after an item that the conversation lacks.
var ErrNoItem = errors.New("the conversation has no such item")

// ItemPage chooses items of a conversation: a part of their order, or an item by its id. The
// zero ItemPage chooses no items.
type ItemPage struct {
	// Limit bounds how many items are chosen.
	Limit int
	// Descending orders the items from the last to the first.
	Descending bool
	// After is the id of the item after which the page begins, "" for the beginning.
	After string
	// Only is the id of the only item that is chosen, "" for no such choice.
	Only string
	// Measure leaves the items out, and sets Count and Size of the Conversation.
	Measure bool
}

// AllItems chooses all items. Measured chooses all items without reading them.
var (
	AllItems = ItemPage{Limit: math.MaxInt32}
	Measured = ItemPage{Limit: math.MaxInt32, Measure: true}
)

// Choose leaves the conversation the items that a page chooses. length returns the length of
// an item, in bytes.
func (c *Conversation) Choose(p ItemPage, length func(*ConversationItem) int64) error {
	items := c.Items
	if p.Descending {
		items = slices.Clone(items)
		slices.Reverse(items)
	}
	if p.After != "" {
		i := slices.IndexFunc(items, func(item ConversationItem) bool { return item.ID == p.After })
		if i < 0 {
			return ErrNoItem
		}
		items = items[i+1:]
	}
	if p.Only != "" {
		items = slices.DeleteFunc(slices.Clone(items), func(item ConversationItem) bool { return item.ID != p.Only })
	}
	if c.Items = items[:min(p.Limit, len(items))]; len(c.Items) == 0 {
		c.Items = nil
	}
	if !p.Measure {
		return nil
	}
	for i := range c.Items {
		c.Count, c.Size = c.Count+1, c.Size+length(&c.Items[i])
	}
	c.Items = nil
	return nil
}

// Conversation is an ordered list of items that calls read, and add to.
type Conversation struct {
	ID string
	// User is who has the conversation within the organisation, "" if nobody was named.
	User string
	// ChangedAt is the time of the last change. Whoever reads a conversation and changes it
	// gives the change a later time, so that the change comes later on nodes with other
	// clocks, too.
	CreatedAt, ChangedAt Timestamp
	// Metadata is the client's, a JSON object.
	Metadata string
	// Items are JSON objects, in their order.
	Items []ConversationItem
	// Count is how many items a page with Measure chooses, and Size their length in bytes.
	// Without Measure both are 0.
	Count int
	Size  int64
}

// NoCall stands for the call of an item that a client has added without one.
var NoCall = uuid.Max

// ConversationItem is one item of a conversation.
type ConversationItem struct {
	ID string
	// JSON is the item, an object.
	JSON string
	// Record is the call that added the item, NoCall, or Nil if that is not known: Weir 0.1.0 did not note it.
	Record uuid.UUID
	// AddedAt is when the item was added.
	AddedAt Timestamp
}

// ConversationChange is what an Annotation changes in a conversation. A conversation that is
// not known is not changed, unless Created is set. A deleted conversation stays deleted.
type ConversationChange struct {
	ID      string
	Created bool
	// User is set with Created alone.
	User string
	// Metadata replaces the conversation's metadata, unless it is "".
	Metadata string
	// Add are the ids of items that are added at the end, and Items the items
	// themselves, as JSON. An id that the conversation has is not added again.
	Add, Items []string
	// Record is the call that adds the items, NoCall, or Nil if that is not known.
	Record uuid.UUID
	// Remove is the id of the item that is removed, "" if no item is.
	Remove string
	// Deleted removes the conversation and its items.
	Deleted bool
}

// ConversationOf returns what a conversation has become by its changes, nil if the
// conversation does not exist. Changes of the same moment apply in the order of changes. It
// is for backends that keep the changes: a change that comes again changes nothing.
func ConversationOf(changes []*Annotation) *Conversation {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b *Annotation) int { return cmp.Compare(a.At, b.At) })
	creation := slices.IndexFunc(changes, func(a *Annotation) bool { return a.Conversation.Created })
	if creation < 0 || slices.ContainsFunc(changes, func(a *Annotation) bool { return a.Conversation.Deleted }) {
		return nil
	}
	first := changes[creation].Conversation
	c := &Conversation{ID: first.ID, User: first.User, CreatedAt: changes[creation].At, Metadata: first.Metadata}
	has := make(map[string]bool)
	for _, a := range changes {
		change := a.Conversation
		c.ChangedAt, c.Metadata = a.At, cmp.Or(change.Metadata, c.Metadata)
		for i, id := range change.Add[:min(len(change.Add), len(change.Items))] {
			if !has[id] {
				has[id] = true
				c.Items = append(c.Items, ConversationItem{ID: id, JSON: change.Items[i], Record: change.Record, AddedAt: a.At})
			}
		}
		if has[change.Remove] {
			delete(has, change.Remove)
			c.Items = slices.DeleteFunc(c.Items, func(item ConversationItem) bool { return item.ID == change.Remove })
		}
	}
	return c
}

// WithoutErased returns the conversation without the items of erased calls. It is nil if all that is
// left are items that clients added without a call: they were the input of those that are erased. An
// item whose call is not known may be of anybody, and stays with its conversation.
func (c *Conversation) WithoutErased(erased func(record uuid.UUID) bool) *Conversation {
	next := *c
	next.Items = slices.DeleteFunc(slices.Clone(c.Items), func(item ConversationItem) bool {
		return item.Record != uuid.Nil && item.Record != NoCall && erased(item.Record)
	})
	switch {
	case len(next.Items) == len(c.Items):
		return c
	case slices.ContainsFunc(next.Items, func(item ConversationItem) bool { return item.Record != NoCall }):
		return &next
	}
	return nil
}
