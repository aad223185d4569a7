package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// conversation applies a change to a conversation.
func (w *writer) conversation(f *storage.Annotation) error {
	c := f.Conversation
	if c.Deleted {
		if _, err := w.c.exec("DELETE FROM conversation_items WHERE org = ? AND conversation = ?", f.Org, c.ID); err != nil {
			return err
		}
		_, err := w.c.exec("DELETE FROM conversations WHERE org = ? AND id = ?", f.Org, c.ID)
		return err
	}
	if c.Created {
		_, err := w.c.exec("INSERT OR IGNORE INTO conversations (org, id, user, created_at, changed_at, metadata) VALUES (?, ?, ?, ?, ?, ?)",
			f.Org, c.ID, c.User, int64(f.At), int64(f.At), c.Metadata)
		if err != nil {
			return err
		}
	}
	changed, err := w.c.exec("UPDATE conversations SET changed_at = max(changed_at, ?), metadata = iif(? = '', metadata, ?) WHERE org = ? AND id = ?",
		int64(f.At), c.Metadata, c.Metadata, f.Org, c.ID)
	if err != nil {
		return err
	}
	if n, err := changed.RowsAffected(); n == 0 || err != nil { // it was deleted meanwhile
		return err
	}
	for i := range min(len(c.Add), len(c.Items)) {
		item := []driver.Value{f.Org, c.ID, c.Add[i], c.Items[i], int64(f.At), nil}
		if c.Record != uuid.Nil {
			item[5] = c.Record[:]
		}
		_, err := w.c.exec("INSERT OR IGNORE INTO conversation_items ("+columnList(itemColumns, "")+") VALUES ("+parameterList(itemColumns)+")", append(item, w.sum.of(itemColumns, item))...)
		if err != nil {
			return err
		}
	}
	if c.Remove != "" {
		_, err = w.c.exec("DELETE FROM conversation_items WHERE org = ? AND conversation = ? AND id = ?", f.Org, c.ID, c.Remove)
	}
	return err
}

// Conversation returns a conversation with the items of a page.
func (b *Backend) Conversation(ctx context.Context, org, id string, page storage.ItemPage) (*storage.Conversation, error) {
	found, err := b.conversations(ctx, org, page, "id = ?", id)
	if errors.Is(err, storage.ErrNoItem) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("reading the conversation %s from %s: %w", id, b.path, explain(err))
	}
	if len(found) == 0 {
		return nil, storage.ErrNotFound
	}
	return found[0], nil
}

// Conversations returns an organisation's conversations.
func (b *Backend) Conversations(ctx context.Context, org, after string, limit int) ([]*storage.Conversation, error) {
	found, err := b.conversations(ctx, org, storage.AllItems, "id > ? ORDER BY id LIMIT ?", after, int64(limit))
	if err != nil {
		return nil, fmt.Errorf("reading the conversations of %s from %s: %w", org, b.path, explain(err))
	}
	return found, nil
}

// conversations reads the conversations that a condition chooses, as they are at a moment.
func (b *Backend) conversations(ctx context.Context, org string, page storage.ItemPage, condition string, args ...driver.Value) (found []*storage.Conversation, err error) {
	err = b.withReader(ctx, func(ctx context.Context, r reader) error {
		err := r.c.query(ctx, "SELECT id, user, created_at, changed_at, metadata FROM conversations WHERE org = ? AND "+condition, append([]driver.Value{org}, args...),
			func(row []driver.Value) error {
				found = append(found, &storage.Conversation{
					ID: row[0].(string), User: row[1].(string), CreatedAt: storage.Timestamp(row[2].(int64)),
					ChangedAt: storage.Timestamp(row[3].(int64)), Metadata: row[4].(string),
				})
				return nil
			})
		for _, c := range found {
			if err != nil {
				break
			}
			err = r.items(ctx, org, c, page)
		}
		return err
	})
	return found, err
}

// items reads the items of a conversation that a page chooses.
func (r reader) items(ctx context.Context, org string, c *storage.Conversation, p storage.ItemPage) error {
	if p.Limit == 0 {
		return nil
	}
	where, args := "org = ? AND conversation = ?", []driver.Value{org, c.ID}
	behind, order := " > ?", " ORDER BY n LIMIT ?"
	if p.Descending {
		behind, order = " < ?", " ORDER BY n DESC LIMIT ?"
	}
	if p.After != "" {
		var after driver.Value
		if err := r.c.query(ctx, "SELECT n FROM conversation_items WHERE "+where+" AND id = ?", []driver.Value{org, c.ID, p.After}, func(row []driver.Value) error {
			after = row[0]
			return nil
		}); err != nil {
			return err
		}
		if after == nil {
			return storage.ErrNoItem
		}
		where, args = where+" AND n"+behind, append(args, after)
	}
	if p.Only != "" {
		where, args = where+" AND id = ?", append(args, p.Only)
	}
	where, args = where+order, append(args, int64(p.Limit))
	if p.Measure {
		return r.c.query(ctx, "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT octet_length(item) AS size FROM conversation_items WHERE "+where+")", args, func(row []driver.Value) error {
			c.Count, c.Size = int(row[0].(int64)), row[1].(int64)
			return nil
		})
	}
	return r.c.query(ctx, "SELECT "+columnList(itemColumns, "")+" FROM conversation_items WHERE "+where, args, func(row []driver.Value) error {
		if err := compareRow(itemColumns, row); err != nil {
			return fmt.Errorf("an item of the conversation %s: %w", c.ID, err)
		}
		item := storage.ConversationItem{ID: row[2].(string), JSON: row[3].(string), AddedAt: storage.Timestamp(row[4].(int64))}
		if record, ok := row[5].([]byte); ok {
			item.Record = uuid.UUID(record)
		}
		c.Items = append(c.Items, item)
		return nil
	})
}

// eraseItems deletes the items that a record has added to conversations, and the conversations in
// which all others were added without a call.
func (w *writer) eraseItems(ctx context.Context, key storage.RecordKey) error {
	var conversations []driver.Value
	err := w.c.query(ctx, "SELECT DISTINCT conversation FROM conversation_items WHERE "+itemsOfRecord, []driver.Value{key.Org, key.ID[:]}, func(row []driver.Value) error {
		conversations = append(conversations, row[0])
		return nil
	})
	if err != nil || len(conversations) == 0 {
		return err
	}
	if _, err := w.c.exec("DELETE FROM conversation_items WHERE "+itemsOfRecord, key.Org, key.ID[:]); err != nil {
		return err
	}
	for _, id := range conversations {
		const others = " AND NOT EXISTS (SELECT 1 FROM conversation_items WHERE org = ? AND conversation = ? AND record IS NOT ?)"
		if _, err := w.c.exec("DELETE FROM conversations WHERE org = ? AND id = ?"+others, key.Org, id, key.Org, id, storage.NoCall[:]); err != nil {
			return err
		}
		if _, err := w.c.exec("DELETE FROM conversation_items WHERE org = ? AND conversation = ?"+others, key.Org, id, key.Org, id, storage.NoCall[:]); err != nil {
			return err
		}
	}
	return nil
}

// itemsOfRecord is the condition of the items that a record has added: see the index of records.
const itemsOfRecord = "org = ? AND record = ?"

// CountItems implements storage.RecordEraser.
func (b *Backend) CountItems(ctx context.Context, org string, ids []uuid.UUID) (n int64, whole []string, err error) {
	err = b.withReader(ctx, func(ctx context.Context, r reader) error {
		remaining := make(map[string]bool) // whether an item remains that a client has not added without a call
		for _, id := range ids {
			if err := r.c.query(ctx, "SELECT conversation, count(*) FROM conversation_items WHERE "+itemsOfRecord+" GROUP BY conversation", []driver.Value{org, id[:]}, func(row []driver.Value) error {
				remaining[row[0].(string)] = false
				n += row[1].(int64)
				return nil
			}); err != nil {
				return err
			}
		}
		for c := range remaining {
			if err := r.c.query(ctx, "SELECT DISTINCT record FROM conversation_items WHERE org = ? AND conversation = ? AND record IS NOT ?", []driver.Value{org, c, storage.NoCall[:]}, func(row []driver.Value) error {
				record, known := row[0].([]byte)
				remaining[c] = remaining[c] || !known || !slices.Contains(ids, uuid.UUID(record))
				return nil
			}); err != nil {
				return err
			}
			if !remaining[c] {
				whole = append(whole, c)
			}
		}
		return nil
	})
	if err != nil {
		return 0, nil, fmt.Errorf("counting items of conversations in %s: %w", b.path, explain(err))
	}
	return n, whole, nil
}

// PruneConversations deletes items that were added before a time, and conversations
// that were changed before it.
func (b *Backend) PruneConversations(ctx context.Context, before storage.Timestamp, spared []string) (more bool, err error) {
	return b.pruneWith(func(w *writer) (bool, error) { return w.pruneConversations(ctx, before, spared) })
}

func (w *writer) pruneConversations(ctx context.Context, before storage.Timestamp, spared []string) (more bool, err error) {
	const notSpared = " AND org NOT IN (SELECT value FROM json_each(?))"
	err = w.transaction(ctx, func() error {
		items, err := w.delete("DELETE FROM conversation_items WHERE n IN (SELECT n FROM conversation_items WHERE added_at < ?"+notSpared+" LIMIT ?)", before, compactJSON(spared))
		if more = items == int64(w.bounds.pruneRows); more || err != nil {
			return err
		}
		old, err := w.delete("DELETE FROM conversations WHERE (org, id) IN (SELECT org, id FROM conversations WHERE changed_at < ?"+notSpared+" LIMIT ?)", before, compactJSON(spared))
		more = old == int64(w.bounds.pruneRows)
		return err
	})
	return more && err == nil, err
}
