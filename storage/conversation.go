package storage

import "context"

// ConversationKeeper is a Backend of one node that keeps the conversations of the
// Responses API. They consist of content, and are pruned as content is.
type ConversationKeeper interface {
	// Conversation answers a conversation with its items, or ErrNotFound.
	Conversation(ctx context.Context, org, id string) (*Conversation, error)
	// PruneConversations is Prune for the items of conversations, and for
	// conversations that nothing has changed since.
	PruneConversations(ctx context.Context, before Timestamp) (more bool, err error)
}

// Conversation is an ordered list of items that calls read, and add to.
type Conversation struct {
	ID string
	// User is whose it is within the organisation, "" if nobody was named.
	User      string
	CreatedAt Timestamp
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
// known is not changed, unless Created is set.
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
