package storagetest

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Conversation makes a conversation of its changes.
func (m *Memory) Conversation(ctx context.Context, org, id string, page storage.ItemPage) (*storage.Conversation, error) {
	return query(ctx, m, func() (*storage.Conversation, error) {
		c := storage.ConversationOf(m.changesOf(org, id))
		if c == nil {
			return nil, storage.ErrNotFound
		}
		return c, c.Choose(page, func(item *storage.ConversationItem) int64 { return int64(len(item.JSON)) })
	})
}

func (m *Memory) changesOf(org, id string) (changes []*storage.Annotation) {
	for _, a := range m.changes[org] {
		if a.Conversation.ID == id {
			changes = append(changes, a)
		}
	}
	return changes
}

// Conversations returns an organisation's conversations.
func (m *Memory) Conversations(ctx context.Context, org, after string, limit int) ([]*storage.Conversation, error) {
	return query(ctx, m, func() ([]*storage.Conversation, error) {
		found := make(map[string]*storage.Conversation)
		for _, a := range m.changes[org] {
			id := a.Conversation.ID
			if _, again := found[id]; again || id <= after {
				continue
			}
			if c := storage.ConversationOf(m.changesOf(org, id)); c != nil {
				found[id] = c
			}
		}
		all := slices.SortedFunc(maps.Values(found), func(a, b *storage.Conversation) int { return cmp.Compare(a.ID, b.ID) })
		return all[:min(limit, len(all))], nil
	})
}

// CountItems implements storage.RecordEraser.
func (m *Memory) CountItems(ctx context.Context, org string, ids []uuid.UUID) (n int64, whole []string, err error) {
	whole, err = query(ctx, m, func() (whole []string, _ error) {
		for id, items := range m.itemsOf(org, ids) {
			n += int64(len(items))
			if c := storage.ConversationOf(m.changesOf(org, id)); c != nil && c.WithoutErased(func(record uuid.UUID) bool { return slices.Contains(ids, record) }) == nil {
				whole = append(whole, id)
			}
		}
		return whole, nil
	})
	return n, whole, err
}

// itemsOf returns the ids of the items that records have added to each conversation.
func (m *Memory) itemsOf(org string, ids []uuid.UUID) map[string][]string {
	found := make(map[string][]string)
	for _, a := range m.changes[org] {
		id := a.Conversation.ID
		if _, again := found[id]; again {
			continue
		}
		found[id] = nil
		if c := storage.ConversationOf(m.changesOf(org, id)); c != nil {
			for _, item := range c.Items {
				if slices.Contains(ids, item.Record) {
					found[id] = append(found[id], item.ID)
				}
			}
		}
	}
	return found
}

// eraseItems leaves conversations what storage.Conversation.WithoutErased says. An item is not back
// because another call had added it again.
func (m *Memory) eraseItems(org string, ids []uuid.UUID) {
	if len(m.changes[org]) == 0 { // there may be no map yet
		return
	}
	erased := func(record uuid.UUID) bool { return slices.Contains(ids, record) }
	items := m.itemsOf(org, ids)
	var remaining []*storage.Annotation
	for _, a := range m.changes[org] {
		if c := storage.ConversationOf(m.changesOf(org, a.Conversation.ID)); c != nil && c.WithoutErased(erased) == nil {
			continue
		}
		change := *a.Conversation
		change.Add, change.Items = nil, nil
		for i, item := range a.Conversation.Add {
			if !erased(change.Record) && !slices.Contains(items[change.ID], item) {
				change.Add, change.Items = append(change.Add, item), append(change.Items, a.Conversation.Items[i])
			}
		}
		a = &storage.Annotation{Org: a.Org, At: a.At, Conversation: &change}
		remaining = append(remaining, a)
	}
	m.changes[org] = remaining
}

// PruneConversations implements storage.Conversations.
func (m *Memory) PruneConversations(ctx context.Context, before storage.Timestamp, spared []string) (more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for org, changes := range m.changes {
		if !slices.Contains(spared, org) {
			m.changes[org] = pruneConversations(changes, before)
		}
	}
	return false, m.usable(ctx)
}

// pruneConversations returns what is left of the changes of an organisation's
// conversations.
func pruneConversations(changes []*storage.Annotation, before storage.Timestamp) (remaining []*storage.Annotation) {
	changed := make(map[string]storage.Timestamp)
	for _, a := range changes {
		changed[a.Conversation.ID] = max(changed[a.Conversation.ID], a.At)
	}
	for _, a := range changes {
		if changed[a.Conversation.ID] < before {
			continue
		}
		annotation, change := *a, *a.Conversation
		if annotation.Conversation = &change; a.At < before {
			change.Add, change.Items = nil, nil
		}
		remaining = append(remaining, &annotation)
	}
	return remaining
}
