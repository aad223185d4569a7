package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// spanKeys is the table of Record.SpanKeys. Its rows come in buckets of time, as those of labels.
const spanKeys = `CREATE TABLE IF NOT EXISTS span_keys (
	bucket  INTEGER NOT NULL, -- of created_at, as in labels
	org     TEXT NOT NULL,
	key     TEXT NOT NULL,
	request BLOB NOT NULL, -- request_id
	PRIMARY KEY (bucket, key, org, request)
) STRICT, WITHOUT ROWID`

func (w *writer) insertSpanKeys(r *storage.Record) error {
	for _, key := range r.SpanKeys {
		if _, err := w.c.exec("INSERT OR IGNORE INTO span_keys (bucket, org, key, request) VALUES (?, ?, ?, ?)",
			bucketOf(columnar.FirstKey(r.CreatedAt)), r.Org, key, r.ID[:]); err != nil {
			return err
		}
	}
	return nil
}

// Spans implements storage.SpanFinder.
func (b *Backend) Spans(ctx context.Context, org string, keys []storage.SpanKey) (map[string][]storage.RecordKey, error) {
	buckets := make(map[int64][]string)
	for _, k := range keys {
		for bucket := bucketOf(columnar.FirstKey(k.From)); bucket <= bucketOf(columnar.FirstKey(k.Until)); bucket++ {
			buckets[bucket] = append(buckets[bucket], k.Key)
		}
	}
	found := make(map[string][]storage.RecordKey)
	err := b.withReader(ctx, func(ctx context.Context, r reader) error {
		for bucket, keys := range buckets {
			list, err := json.Marshal(keys)
			if err != nil {
				return err
			}
			const query = `SELECT k.key, k.request FROM json_each(?1) AS j CROSS JOIN span_keys AS k
				ON k.bucket = ?2 AND k.key = j.value AND k.org = ?3`
			err = r.c.query(ctx, query, []driver.Value{string(list), bucket, org}, func(row []driver.Value) error {
				key, ok := row[0].(string)
				id, err := uuid.FromBytes(row[1].([]byte))
				if ok && err == nil {
					found[key] = append(found[key], storage.RecordKey{Org: org, ID: id})
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading span keys from %s: %w", b.path, explain(err))
	}
	return found, nil
}
