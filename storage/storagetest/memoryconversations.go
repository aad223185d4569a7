package storagetest

import (
	"context"
	"slices"

	"github.com/weirhq/weir/storage"
)

// Conversation makes a conversation of its changes.
func (m *Memory) Conversation(ctx context.Context, org, id string) (*storage.Conversation, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.usable(ctx); err != nil {
		return nil, err
	}
	c := storage.ConversationOf(m.changesOf(org, id))
	if c == nil {
		return nil, storage.ErrNotFound
	}
	return c, nil
}

func (m *Memory) changesOf(org, id string) (changes []*storage.Annotation) {
	for _, a := range m.changes[org] {
		if a.Conversation.ID == id {
			changes = append(changes, a)
		}
	}
	return changes
}

// Conversations answers the ids of an organisation's conversations.
func (m *Memory) Conversations(ctx context.Context, org, after string, limit int) (ids []string, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, a := range m.changes[org] {
		if id := a.Conversation.ID; a.Conversation.Created && id > after && storage.ConversationOf(m.changesOf(org, id)) != nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(limit, len(ids))], m.usable(ctx)
}

// PruneConversations implements storage.Conversations.
func (m *Memory) PruneConversations(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for org, changes := range m.changes {
		m.changes[org] = PruneConversations(changes, before)
	}
	return false, m.usable(ctx)
}

// PruneConversations returns what is left of the changes of an organisation's
// conversations.
func PruneConversations(changes []*storage.Annotation, before storage.Timestamp) (left []*storage.Annotation) {
	changed := make(map[string]storage.Timestamp)
	for _, a := range changes {
		changed[a.Conversation.ID] = max(changed[a.Conversation.ID], a.At)
	}
	for _, a := range changes {
		if changed[a.Conversation.ID] < before {
			continue
		}
		kept, change := *a, *a.Conversation
		if kept.Conversation = &change; a.At < before {
			change.Add, change.Items = nil, nil
		}
		left = append(left, &kept)
	}
	return left
}
