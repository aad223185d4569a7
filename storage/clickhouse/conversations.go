package clickhouse

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// changeColumns are the columns of conversation_changes.
const changeColumns = "org, conversation, changed_at, version, n, change, item, value, user, record"

// changeRows are a change of a conversation, as the rows of a batch after n others.
func changeRows(a *storage.Annotation, version *big.Int, n int) (rows []row) {
	c := a.Conversation
	add := func(change, item, value, user string) {
		at := a.At
		if item == "" {
			at = 0 // in the partition of what stays
		}
		rows = append(rows, row{a.Key(), at, []any{a.Org, c.ID, int64(a.At), version, uint32(n + len(rows)), change, item, value, user, c.Record}})
	}
	if c.Created {
		add("created", "", c.Metadata, c.User)
	} else if c.Metadata != "" {
		add("metadata", "", c.Metadata, "")
	}
	for i := range min(len(c.Add), len(c.Items)) {
		add("added", c.Add[i], c.Items[i], "")
	}
	if c.Remove != "" {
		add("removed", c.Remove, "", "")
	}
	if c.Deleted {
		add("deleted", "", "", "")
	}
	return rows
}

// Conversation returns what a conversation has become by its changes. A page is chosen by the
// lengths of the items, and then read.
func (b *Backend) Conversation(ctx context.Context, org, id string, page storage.ItemPage) (*storage.Conversation, error) {
	r, err := b.reader(org)
	if err != nil {
		return nil, err
	}
	whole := page == storage.AllItems
	found, err := r.conversations(ctx, []string{id}, whole)
	if err == nil && len(found) == 0 {
		return nil, storage.ErrNotFound
	}
	if err == nil && !whole {
		if err := found[0].Choose(page, func(item *storage.ConversationItem) int64 {
			n, _ := strconv.ParseInt(item.JSON, 10, 64) // of length()
			return n
		}); err != nil {
			return nil, err
		}
		err = r.readItems(ctx, found[0])
	}
	if err != nil {
		return nil, fmt.Errorf("reading the conversation %s from ClickHouse: %w", id, explain(ctx, err))
	}
	return found[0], nil
}

// readItems reads the JSON of a conversation's items. The items' other fields must be known.
func (r *reader) readItems(ctx context.Context, c *storage.Conversation) error {
	if len(c.Items) == 0 {
		return nil
	}
	at := make(map[string]*storage.ConversationItem)
	var ids []string
	for i := range c.Items {
		at[c.Items[i].ID], ids = &c.Items[i], append(ids, c.Items[i].ID)
	}
	p := r.withOwnParams()
	return p.query(ctx, "SELECT item, value, changed_at FROM conversation_changes WHERE "+
		all(ofOrg, "conversation = "+p.text(c.ID), "change = 'added'", "item IN "+p.bind(ids, "Array(String)")), func(rows driver.Rows) error {
		var id, value string
		var added time.Time
		err := rows.Scan(&id, &value, &added)
		if item := at[id]; err == nil && item.AddedAt == storage.Millis(added) { // not of an item that was removed before
			item.JSON = value
		}
		return err
	})
}

// conversations reads the conversations with the given ids, in the order of ids. Unless whole
// is true, the items have their lengths in place of JSON.
func (r *reader) conversations(ctx context.Context, ids []string, whole bool) (found []*storage.Conversation, err error) {
	p := r.withOwnParams()
	changes := make(map[string][]*storage.Annotation)
	value := "value"
	if !whole {
		value = "if(change = 'added', toString(length(value)), value)"
	}
	err = p.query(ctx, "SELECT conversation, changed_at, change, item, "+value+", user, record FROM conversation_changes WHERE "+all(ofOrg, "conversation IN "+p.bind(ids, "Array(String)"))+
		" ORDER BY version, n SETTINGS max_threads = 1", func(rows driver.Rows) error {
		var at time.Time
		var id, change, item, value, user string
		var record uuid.UUID
		err := rows.Scan(&id, &at, &change, &item, &value, &user, &record)
		c := &storage.ConversationChange{ID: id, Record: record}
		switch change {
		case "created":
			c.Created, c.Metadata, c.User = true, value, user
		case "metadata":
			c.Metadata = value
		case "added":
			c.Add, c.Items = []string{item}, []string{value}
		case "removed":
			c.Remove = item
		case "deleted":
			c.Deleted = true
		}
		changes[id] = append(changes[id], &storage.Annotation{At: storage.Millis(at), Conversation: c})
		return err
	})
	for _, id := range ids {
		if c := storage.ConversationOf(changes[id]); c != nil {
			found = append(found, c)
		}
	}
	return found, err
}

// Conversations returns an organisation's conversations.
func (b *Backend) Conversations(ctx context.Context, org, after string, limit int) (found []*storage.Conversation, err error) {
	err = b.reading(ctx, org, "reading the conversations of "+org+" from ClickHouse", func(r *reader) error {
		for len(found) == 0 { // all may be deleted once their ids are known
			ids, err := r.conversationIDs(ctx, after, limit)
			if len(ids) == 0 || err != nil {
				return err
			}
			if found, err = r.conversations(ctx, ids, true); err != nil {
				return err
			}
			after = ids[len(ids)-1]
		}
		return nil
	})
	return found, err
}

// conversationIDs returns at most limit ids of conversations, those after an id.
func (r *reader) conversationIDs(ctx context.Context, after string, limit int) (ids []string, err error) {
	p := r.withOwnParams()
	err = p.query(ctx, "SELECT conversation FROM conversation_changes WHERE "+all(ofOrg, "conversation > "+p.text(after), "item = ''")+
		" GROUP BY conversation HAVING countIf(change = 'created') > 0 AND countIf(change = 'deleted') = 0 ORDER BY conversation LIMIT "+p.integer(int64(limit))+
		" SETTINGS optimize_aggregation_in_order = 1", textTo(&ids))
	return ids, err
}

// itemRecord is the column of the record that has added an item: its default means that it is not known.
const itemRecord = "ALTER TABLE conversation_changes{cluster} ADD COLUMN IF NOT EXISTS record UUID CODEC(ZSTD(1))"

// CountItems implements storage.RecordEraser.
func (b *Backend) CountItems(ctx context.Context, org string, ids []uuid.UUID) (n int64, whole []string, err error) {
	erased := func(record uuid.UUID) bool { return slices.Contains(ids, record) }
	err = b.reading(ctx, org, "counting items of conversations in ClickHouse", func(r *reader) error {
		_, found, err := r.changedBy(ctx, ids)
		for _, c := range found {
			if c.WithoutErased(erased) == nil {
				whole = append(whole, c.ID)
			}
			for _, item := range c.Items {
				if erased(item.Record) {
					n++
				}
			}
		}
		return err
	})
	return n, whole, err
}

// changedBy returns the ids of the conversations that records have changed, and those of them that
// are not deleted, with the lengths of their items.
func (r *reader) changedBy(ctx context.Context, records []uuid.UUID) (ids []string, found []*storage.Conversation, err error) {
	p := r.withOwnParams()
	err = p.query(ctx, "SELECT DISTINCT conversation FROM conversation_changes WHERE "+all(ofOrg, p.these("record", records)), textTo(&ids))
	if err != nil || len(ids) == 0 {
		return nil, nil, err
	}
	found, err = r.conversations(ctx, ids, false)
	return ids, found, err
}

// eraseItems deletes the items that records have added to conversations, and the conversations in
// which all others were added without a call. Other calls may have added an item again, which the
// conversation had: these rows go, too, or the item would be back. Of a conversation that goes, the row
// stays that it is deleted: nobody reads what another node adds meanwhile, and Erase removes it.
func (b *Backend) eraseItems(ctx context.Context, org string, ids []uuid.UUID) error {
	r, err := b.reader(org)
	if err != nil {
		return err
	}
	changed, found, err := r.changedBy(ctx, ids)
	if err != nil || len(changed) == 0 {
		return err
	}
	erased := func(record uuid.UUID) bool { return slices.Contains(ids, record) }
	remaining := make(map[string]bool)      // conversations
	erasedItems := make(map[[2]string]bool) // of these, by the ids of the conversation and the item
	for _, c := range found {
		if c.WithoutErased(erased) == nil {
			continue
		}
		remaining[c.ID] = true
		for _, item := range c.Items {
			if erased(item.Record) {
				erasedItems[[2]string{c.ID, item.ID}] = true
			}
		}
	}
	gone := slices.DeleteFunc(changed, func(id string) bool { return remaining[id] }) // also those that a client has deleted
	p := r.withOwnParams()
	if err := p.conn.Exec(withMarkSettings(ctx), "INSERT INTO conversation_changes (org, conversation, changed_at, change) SELECT {org:String}, arrayJoin("+p.bind(gone, "Array(String)")+"), now64(3), 'deleted'", p.args...); err != nil {
		return err
	}
	these := r.these("record", ids)
	var conversations, items []string // of the items that were added again
	err = r.query(ctx, "SELECT conversation, item FROM conversation_changes WHERE "+all(ofOrg, "change = 'added'", "conversation IN (SELECT conversation FROM conversation_changes WHERE "+all(ofOrg, these)+")")+
		" GROUP BY conversation, item HAVING countIf("+these+") > 0 AND countIf(NOT "+these+") > 0", func(rows driver.Rows) error {
		var c, item string
		err := rows.Scan(&c, &item)
		if erasedItems[[2]string{c, item}] {
			conversations, items = append(conversations, c), append(items, item)
		}
		return err
	})
	if err != nil {
		return err
	}
	return r.mutate(ctx, "conversation_changes", "DELETE FROM conversation_changes"+b.onCluster(), "change != 'deleted' AND ("+these+" OR conversation IN "+r.bind(gone, "Array(String)")+
		" OR change = 'added' AND has(arrayZip("+r.bind(conversations, "Array(String)")+", "+r.bind(items, "Array(String)")+"), (conversation, item)))")
}

// prunedConversations bounds the conversations that one statement deletes.
const prunedConversations = 1000

// Erase implements storage.Eraser: it removes from the files what deleted conversations had, also what
// nodes have added after they were deleted.
func (b *Backend) Erase(ctx context.Context) (more bool, err error) {
	conn, _, err := b.opened()
	if err != nil {
		return false, err
	}
	r := &reader{conn: conn, params: new(params)}
	const left = "org != '' AND change != 'deleted'" // marks stay, and that the conversations are deleted
	these, n, err := r.listConversations(ctx, "SELECT DISTINCT org, conversation FROM conversation_changes WHERE "+left+
		" AND (org, conversation) IN (SELECT org, conversation FROM conversation_changes WHERE item = '' AND change = 'deleted') LIMIT "+r.integer(prunedConversations))
	if err == nil && n > 0 {
		err = conn.Exec(ctx, "ALTER TABLE conversation_changes"+b.onCluster()+" DELETE WHERE "+left+" AND "+these+" SETTINGS mutations_sync = 1", r.args...)
	}
	if err != nil {
		return false, fmt.Errorf("erasing deleted conversations from ClickHouse: %w", explain(ctx, err))
	}
	return n == prunedConversations, nil
}

// listConversations returns the condition that a row is of one of the conversations that a statement
// lists, by their organisations and ids, and how many these are.
func (r *reader) listConversations(ctx context.Context, statement string) (these string, n int, err error) {
	var orgs, ids []string
	err = r.query(ctx, statement, func(rows driver.Rows) error {
		var org, id string
		err := rows.Scan(&org, &id)
		orgs, ids = append(orgs, org), append(ids, id)
		return err
	})
	return "has(arrayZip(" + r.bind(orgs, "Array(String)") + ", " + r.bind(ids, "Array(String)") + "), (org, conversation))", len(ids), err
}

// PruneConversations drops the days of items that lie before a time, and deletes, once a
// day, what is left of conversations that nothing has changed since. If organisations are spared,
// it deletes the others' items, once a day, since days have those of all.
func (b *Backend) PruneConversations(ctx context.Context, before storage.Timestamp, spared []string) (more bool, err error) {
	day := before.Time().UTC().Truncate(24 * time.Hour)
	if len(spared) == 0 {
		more, err = b.drop(ctx, "conversation_changes", before)
	}
	if more || err != nil || day.Before(b.pruned) || day.Equal(b.pruned) && slices.Equal(spared, b.spared) {
		return more, err
	}
	conn, _, err := b.opened()
	if err != nil {
		return false, err
	}
	r := &reader{conn: conn, params: new(params)}
	limit := r.time(storage.Millis(day))
	pruned := "org != '' AND NOT has(" + r.bind(spared, "Array(String)") + ", org)" // marks stay
	these, n, err := r.listConversations(ctx, "SELECT org, conversation FROM conversation_changes WHERE "+pruned+" AND item = '' GROUP BY org, conversation HAVING max(changed_at) < "+limit+
		" AND (org, conversation) NOT IN (SELECT org, conversation FROM conversation_changes WHERE changed_at >= "+limit+") LIMIT "+r.integer(prunedConversations))
	if err == nil && (n > 0 || len(spared) > 0) {
		err = conn.Exec(ctx, "ALTER TABLE conversation_changes"+b.onCluster()+" DELETE WHERE changed_at < "+limit+" AND "+pruned+
			" AND (item != '' OR "+these+") SETTINGS mutations_sync = 1", r.args...)
	}
	if err != nil {
		return false, fmt.Errorf("deleting old conversations from ClickHouse: %w", explain(ctx, err))
	}
	if more = n == prunedConversations; !more {
		b.pruned, b.spared = day, spared
	}
	return more, nil
}
