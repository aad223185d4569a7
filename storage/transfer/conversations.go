package transfer

import (
	"cmp"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// pageConversations is how many conversations are read at a time.
const pageConversations = 100

// eachConversation calls do with the conversations of the source, without what the target has
// erased, and with what the target has of each, nil for nothing.
func eachConversation(ctx context.Context, o *Options, org string, do func(from, to *storage.Conversation) error) error {
	from, to := readConversations(ctx, o.From.Backend(), org), readConversations(ctx, o.To.Backend(), org)
	defer from.close()
	defer to.close()
	erased := func(record uuid.UUID) bool { return o.To.Erased(storage.RecordKey{Org: org, ID: record}) > 0 }
	for {
		c, err := from.peek(ctx)
		if c == nil || err != nil {
			return err
		}
		from.skip()
		if c = c.WithoutErased(erased); c == nil || o.To.ErasedConversation(org, c.ID) {
			continue
		}
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

// conversations copies the conversations that were changed later than in the target, or that
// the target lacks.
func (c *copier) conversations(ctx context.Context) error {
	return eachConversation(ctx, c.Options, c.org, func(from, to *storage.Conversation) error {
		if to != nil && to.ChangedAt >= from.ChangedAt {
			return nil
		}
		c.Conversations++
		for _, a := range changes(from, to) {
			size := 0
			for _, item := range a.Conversation.Items {
				size += len(item)
			}
			if err := c.makeSpace(ctx, int64(size)); err != nil {
				return err
			}
			a.Org = c.org
			if err := c.To.AppendAnnotation(a); err != nil {
				return err
			}
		}
		return nil
	})
}

// changes returns the changes that turn the conversation to into from; to is nil if the target
// lacks the conversation. Items that a call added at the same moment are one change. The change
// with the time from.ChangedAt comes last, so that the next copy sees if a copy was cut short.
func changes(from, to *storage.Conversation) []*storage.Annotation {
	var removals, list []*storage.Annotation
	at := func(moment storage.Timestamp, record uuid.UUID) *storage.ConversationChange {
		if n := len(list); n == 0 || list[n-1].At < moment || list[n-1].Conversation.Record != record { // items are in the order of their times
			list = append(list, &storage.Annotation{At: moment, Conversation: &storage.ConversationChange{ID: from.ID, Record: record}})
		}
		return list[len(list)-1].Conversation
	}
	copied := make(map[string]bool)
	if to == nil {
		creation := at(from.CreatedAt, uuid.Nil)
		creation.Created, creation.User, creation.Metadata = true, from.User, from.Metadata
	} else {
		for _, item := range to.Items {
			copied[item.ID] = true
		}
	}
	for _, item := range from.Items {
		if copied[item.ID] {
			delete(copied, item.ID)
			continue
		}
		change := at(item.AddedAt, item.Record)
		change.Add, change.Items = append(change.Add, item.ID), append(change.Items, item.JSON)
	}
	for id := range copied { // and not in from
		removals = append(removals, &storage.Annotation{At: from.ChangedAt - 1, Conversation: &storage.ConversationChange{ID: from.ID, Remove: id}})
	}
	at(from.ChangedAt, uuid.Nil).Metadata = from.Metadata
	return append(removals, list...)
}

// compareConversations compares the conversations of the source that were changed in the
// window. A newer conversation of the target counts as equal.
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
