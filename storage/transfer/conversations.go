package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirhq/weir/storage"
)

// pageConversations is how many ids of conversations are read at a time.
const pageConversations = 1000

// eachConversation calls do with the conversations of the source, and with what the
// target has of each, nil for nothing.
func eachConversation(ctx context.Context, o *Options, org string, do func(from, to *storage.Conversation) error) error {
	for after, more := "", true; more; {
		ids, err := available(ctx, func() ([]string, error) {
			return o.From.Backend().Conversations(ctx, org, after, pageConversations)
		})
		if err != nil {
			return err
		}
		for _, id := range ids {
			from, to, err := both(ctx, o, func(b storage.Backend) (*storage.Conversation, error) {
				c, err := b.Conversation(ctx, org, id)
				if errors.Is(err, storage.ErrNotFound) {
					return nil, nil
				}
				return c, err
			})
			if err == nil && from != nil { // it was not deleted meanwhile
				err = do(from, to)
			}
			if err != nil {
				return fmt.Errorf("conversation %s: %w", id, err)
			}
			after = id
		}
		more = len(ids) == pageConversations
	}
	return nil
}

// conversations copies the conversations that were changed later than those of the target.
func (c *copier) conversations(ctx context.Context) error {
	return eachConversation(ctx, c.Options, c.org, func(from, to *storage.Conversation) error {
		if to != nil && to.ChangedAt >= from.ChangedAt {
			return nil
		}
		c.Conversations++
		change := func(at storage.Timestamp, size int, change *storage.ConversationChange) error {
			if err := c.room(ctx, int64(size)); err != nil {
				return err
			}
			change.ID = from.ID
			return c.To.AppendAnnotation(&storage.Annotation{Org: c.org, At: at, Conversation: change})
		}
		if to == nil {
			to = new(storage.Conversation)
			if err := change(from.CreatedAt, 0, &storage.ConversationChange{Created: true, User: from.User, Metadata: from.Metadata}); err != nil {
				return err
			}
		}
		removed := make(map[string]bool)
		for _, item := range to.Items {
			removed[item.ID] = true
		}
		at := from.CreatedAt
		for _, item := range from.Items {
			at = max(at, item.AddedAt) // the order of the items is that of their times
			if removed[item.ID] {
				delete(removed, item.ID)
				continue
			}
			if err := change(at, len(item.JSON), &storage.ConversationChange{Add: []string{item.ID}, Items: []string{item.JSON}}); err != nil {
				return err
			}
		}
		for id := range removed {
			if err := change(from.ChangedAt, 0, &storage.ConversationChange{Remove: id}); err != nil {
				return err
			}
		}
		return change(from.ChangedAt, 0, &storage.ConversationChange{Metadata: from.Metadata})
	})
}

// compareConversations compares the conversations of the source that were changed in the
// window. Where the target has a newer one, that holds.
func (c *comparer) compareConversations(ctx context.Context) error {
	org := c.hour.Organisation
	return eachConversation(ctx, c.Options, org, func(from, to *storage.Conversation) error {
		if !c.Window.Contains(from.ChangedAt) {
			return nil
		}
		c.Conversations++
		if to == nil || to.ChangedAt <= from.ChangedAt && !sameConversation(from, to) {
			c.differs("the conversation " + from.ID)
		}
		return nil
	})
}

func sameConversation(a, b *storage.Conversation) bool {
	same := a.User == b.User && a.Metadata == b.Metadata && a.CreatedAt == b.CreatedAt && len(a.Items) == len(b.Items)
	for i := 0; same && i < len(a.Items); i++ {
		same = a.Items[i].ID == b.Items[i].ID && a.Items[i].JSON == b.Items[i].JSON
	}
	return same
}
