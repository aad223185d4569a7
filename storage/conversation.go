package storage

import (
	"cmp"
	"context"
	"slices"
)

// Conversations are the part of a Backend that keeps the conversations of the Responses
// API. They consist of content, and are pruned as content is.
type Conversations interface {
	// Conversation answers a conversation with its items, or ErrNotFound.
	Conversation(ctx context.Context, org, id string) (*Conversation, error)
	// Conversations answers those of an organisation, with their items, whose ids come
	// after one in the order of their bytes, at most limit, and none if there are none.
	Conversations(ctx context.Context, org, after string, limit int) ([]*Conversation, error)
	// PruneConversations is Prune for the items of conversations, and for
	// conversations that nothing has changed since.
	PruneConversations(ctx context.Context, before Timestamp) (more bool, err error)
}

// Conversation is an ordered list of items that calls read, and add to.
type Conversation struct {
	ID string
	// User is whose it is within the organisation, "" if nobody was named.
	User string
	// ChangedAt is that of the last change. Whoever changes what was read gives the
	// change a later time, which orders it behind on nodes whose clocks differ.
	CreatedAt, ChangedAt Timestamp
	// Metadata is the client's, a JSON object.
	Metadata string
	// Items are JSON objects, in their order.
	Items []ConversationItem
}

// ConversationItem is one item of a conversation.
type ConversationItem struct {
	ID string
	// JSON is the item, an object.
	JSON string
	// AddedAt is when it was added.
	AddedAt Timestamp
}

// ConversationChange is what an Annotation changes in a conversation. One that is not
// known is not changed, unless Created is set. One that was deleted stays so.
type ConversationChange struct {
	ID      string
	Created bool
	// User is set with Created alone.
	User string
	// Metadata replaces what there is, unless it is "".
	Metadata string
	// Add are the ids of items that are added at the end, and Items the items
	// themselves, as JSON. An id that the conversation has is not added again.
	Add, Items []string
	// Remove is the id of an item that is removed, "" for none.
	Remove string
	// Deleted removes the conversation and its items.
	Deleted bool
}

// ConversationOf returns what a conversation has become by its changes, those of one
// moment in their order, nil if it does not exist. It is for backends that keep the
// changes: one that comes again changes nothing.
func ConversationOf(changes []*Annotation) *Conversation {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(a, b *Annotation) int { return cmp.Compare(a.At, b.At) })
	made := slices.IndexFunc(changes, func(a *Annotation) bool { return a.Conversation.Created })
	if made < 0 || slices.ContainsFunc(changes, func(a *Annotation) bool { return a.Conversation.Deleted }) {
		return nil
	}
	first := changes[made].Conversation
	c := &Conversation{ID: first.ID, User: first.User, CreatedAt: changes[made].At, Metadata: first.Metadata}
	has := make(map[string]bool)
	for _, a := range changes {
		change := a.Conversation
		c.ChangedAt, c.Metadata = a.At, cmp.Or(change.Metadata, c.Metadata)
		for i, id := range change.Add[:min(len(change.Add), len(change.Items))] {
			if !has[id] {
				has[id] = true
				c.Items = append(c.Items, ConversationItem{ID: id, JSON: change.Items[i], AddedAt: a.At})
			}
		}
		if has[change.Remove] {
			delete(has, change.Remove)
			c.Items = slices.DeleteFunc(c.Items, func(item ConversationItem) bool { return item.ID == change.Remove })
		}
	}
	return c
}
