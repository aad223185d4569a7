package clickhouse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/weirhq/weir/storage"
)

// Write inserts a batch: first bodies, so that a record never appears without its body,
// then records, then annotations. Each insert carries a token: the server drops an insert with
// a known token. A row that is inserted again all the same has the same version, and replaces
// the row that is there.
func (b *Backend) Write(ctx context.Context, batch *storage.Batch) error {
	conn, contents, err := b.opened()
	if err != nil {
		return err
	}
	writing, cancel := b.changing(ctx)
	defer cancel()
	w := &writer{backend: b, conn: conn, batch: batch}
	if err = w.content(writing, contents); err == nil {
		err = w.records(writing)
	}
	if err == nil {
		err = w.spanKeys(writing)
	}
	if err == nil {
		err = w.annotations(writing)
	}
	if err == nil {
		err = ctx.Err() // of a batch of nothing
	}
	if err != nil {
		return fmt.Errorf("writing a batch to ClickHouse: %w", explain(ctx, err))
	}
	return nil
}

// writer writes one batch.
type writer struct {
	backend *Backend
	conn    clickhouse.Conn
	batch   *storage.Batch
}

// row is a row of a table. The key names the record that the row is about, and at is the time by
// which the table is partitioned, 0 in the table views.
type row struct {
	key    storage.RecordKey
	at     storage.Timestamp
	values []any
}

// insert inserts rows. The server applies the rows by partition, each partition at once. By the
// token it knows the rows that it has applied.
func (w *writer) insert(ctx context.Context, table, columns string, rows []row) error {
	if len(rows) == 0 {
		return nil
	}
	// The token has the keys because what is written again may be cut otherwise: content
	// may have been deleted meanwhile.
	keys := sha256.New()
	for _, r := range rows {
		keys.Write(r.key.ID[:])
		keys.Write([]byte(r.key.Org + "\x00"))
	}
	token := fmt.Sprintf("%s/%s/%s/%s", w.batch.Journal, w.batch.ID, table, hex.EncodeToString(keys.Sum(nil)[:8]))
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"async_insert":                    0,
		"insert_deduplicate":              1,
		"insert_deduplication_token":      token,
		"insert_quorum":                   0,
		"max_partitions_per_insert_block": 0, // calls that were reported late are of many days
	}))
	insert, err := w.conn.PrepareBatch(ctx, "INSERT INTO "+table+" ("+columns+")")
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, r := range rows {
		if err := insert.Append(r.values...); err != nil {
			return fmt.Errorf("record %s: %w: %w", r.key.ID, storage.ErrRejected, err) // a time that DateTime64 has not
		}
	}
	if err := insert.Send(); err != nil {
		return err
	}
	return w.backend.markPartitions(ctx, w.conn, table, rows)
}

// contentBytes bounds the bodies of one insert, and with it what a batch takes in
// memory.
const contentBytes = 8 << 20

func (w *writer) content(ctx context.Context, contents storage.Contents) error {
	const columns = "org, created_at, request_id, version, segment, ordinal, request_type, request, response_type, response, inputs, media"
	var rows []row
	size := 0
	for _, r := range w.batch.Records {
		if r.Content == (storage.ContentRef{}) {
			continue
		}
		c, err := contents.Content(ctx, r)
		if err != nil {
			return err
		}
		if c == nil {
			continue
		}
		rows = append(rows, row{r.Key(), r.CreatedAt, []any{
			r.Org, int64(r.CreatedAt), r.ID, version(r), int64(r.Content.Segment), int64(r.Content.Ordinal),
			c.Request.Type, c.Request.Data, c.Response.Type, c.Response.Data, c.Inputs, c.Media,
		}})
		if size += len(c.Request.Data) + len(c.Response.Data); size >= contentBytes {
			if err := w.insert(ctx, "content", columns, rows); err != nil {
				return err
			}
			rows, size = nil, 0
		}
	}
	return w.insert(ctx, "content", columns, rows)
}

func (w *writer) records(ctx context.Context) error {
	rows := make([]row, len(w.batch.Records))
	for i, r := range w.batch.Records {
		rows[i] = row{r.Key(), r.CreatedAt, append(values(r), version(r))}
	}
	return w.insert(ctx, "records", columnNames+", version", rows)
}

// annotations are cut into their parts.
func (w *writer) annotations(ctx context.Context) error {
	var scores, properties, tags, views newest
	var changes []row
	for _, a := range w.batch.Annotations {
		at, v := a.At, learnedVersion(a.At, w.batch.End)
		score := func(name string, value float64, feedbackID int64, feedbackAt storage.Timestamp) {
			scores.put(about{a.Key(), name}, row{a.Key(), at, []any{
				a.Org, a.RequestID, name, value, feedbackID, int64(feedbackAt), int64(at), v,
			}})
		}
		for _, name := range slices.Sorted(maps.Keys(a.Scores)) {
			score(name, a.Scores[name], 0, 0)
		}
		for _, name := range a.Removed {
			score(name, math.NaN(), 0, 0)
		}
		if f := a.Feedback; f != nil {
			value := 0.0
			if f.Rating {
				value = 1
			}
			score(storage.FeedbackScore, value, f.ID, f.CreatedAt)
		}
		if p := a.Property; p != nil {
			properties.put(about{a.Key(), p.Name}, row{a.Key(), at, []any{a.Org, a.RequestID, p.Name, p.Value, int64(at), v}})
		}
		if a.Tag != nil {
			tags.put(about{a.Key(), a.SessionID}, row{a.Key(), at, []any{a.Org, a.SessionID, *a.Tag, int64(at), v}})
		}
		if view := a.View; view != nil {
			views.put(about{a.Key(), view.Name}, row{a.Key(), 0, []any{a.Org, view.Name, view.Screen, view.State, int64(view.UpdatedAt), v}})
		}
		if a.Conversation != nil {
			changes = append(changes, changeRows(a, v, len(changes))...)
		}
	}
	for _, t := range []struct {
		table, columns string
		rows           []row
	}{
		{"scores", "org, request_id, name, value, feedback_id, feedback_at, learned_at, version", scores.rows},
		{"late_properties", "org, request_id, name, value, learned_at, version", properties.rows},
		{"session_tags", "org, session, tag, learned_at, version", tags.rows},
		{"views", "org, name, screen, state, updated_at, version", views.rows},
		{"conversation_changes", changeColumns, changes},
	} {
		if err := w.insert(ctx, t.table, t.columns, t.rows); err != nil {
			return err
		}
	}
	return nil
}

// newest keeps the last row about each thing: rows of one batch may have the same
// version.
type newest struct {
	places map[about]int
	rows   []row
}

// about identifies the thing that a row of a table of annotations describes.
type about struct {
	record storage.RecordKey // without an ID for the tags of sessions and for views
	name   string
}

func (n *newest) put(a about, r row) {
	if n.places == nil {
		n.places = make(map[about]int)
	}
	place, ok := n.places[a]
	if !ok {
		place = len(n.rows)
		n.places[a] = place
		n.rows = append(n.rows, r)
	}
	n.rows[place] = r
}
