package transfer

import (
	"cmp"
	"context"
	"fmt"

	"github.com/weirhq/weir/storage"
)

// pageConversations is how many conversations are read at a time.
const pageConversations = 100

// eachConversation calls do with the conversations of the source, and with what the
// target has of each, nil for nothing.
func eachConversation(ctx context.Context, o *Options, org string, do func(from, to *storage.Conversation) error) error {
	from, to := readConversations(ctx, o.From.Backend(), org), readConversations(ctx, o.To.Backend(), org)
	defer from.close()
	defer to.close()
	for {
		c, err := from.peek(ctx)
		if c == nil || err != nil {
			return err
		}
		from.skip()
		there, err := to.find(ctx, c, nil)
		if err == nil {
			err = do(c, there)
		}
		if err != nil {
			return fmt.Errorf("conversation %s: %w", c.ID, err)
		}
	}
}

func readConversations(ctx context.Context, b storage.Backend, org string) *pages[storage.Conversation] {
	after := ""
	byID := func(a, b *storage.Conversation) int { return cmp.Compare(a.ID, b.ID) }
	return readPages(ctx, byID, func(ctx context.Context) ([]*storage.Conversation, bool, error) {
		found, err := b.Conversations(ctx, org, after, pageConversations)
		if len(found) > 0 {
			after = found[len(found)-1].ID
		}
		return found, len(found) > 0, err
	})
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
