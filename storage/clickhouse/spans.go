package clickhouse

import (
	"context"
	"math"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// spanKeys is the table of Record.SpanKeys. Its granules are small, because a batch of spans
// asks for hundreds of keys in as many places.
const spanKeys = `CREATE TABLE IF NOT EXISTS span_keys{cluster} (
	org        LowCardinality(String),
	key        String,
	created_at DateTime64(3, 'UTC') CODEC(Delta(8), ZSTD(1)), -- of the record
	request_id UUID
) ENGINE = {replacing}
PARTITION BY toYYYYMMDD(created_at)
ORDER BY (org, key, created_at, request_id)
SETTINGS {window} = 10000, index_granularity = 256`

func (w *writer) spanKeys(ctx context.Context) error {
	var rows []row
	for _, r := range w.batch.Records {
		for _, key := range r.SpanKeys {
			rows = append(rows, row{r.Key(), r.CreatedAt, []any{r.Org, key, int64(r.CreatedAt), r.ID}})
		}
	}
	return w.insert(ctx, "span_keys", "org, key, created_at, request_id", rows)
}

// Spans implements storage.SpanFinder.
func (b *Backend) Spans(ctx context.Context, org string, keys []storage.SpanKey) (map[string][]storage.RecordKey, error) {
	found := make(map[string][]storage.RecordKey)
	if len(keys) == 0 {
		return found, nil
	}
	names := make([]string, len(keys))
	from, until := storage.Timestamp(math.MaxInt64), storage.Timestamp(math.MinInt64)
	for i, k := range keys {
		names[i] = k.Key
		from, until = min(from, k.From), max(until, k.Until)
	}
	err := b.reading(ctx, org, "reading span keys from ClickHouse", func(r *reader) error {
		return r.query(ctx, "SELECT DISTINCT key, request_id FROM span_keys WHERE "+all(ofOrg,
			"key IN "+r.bind(names, "Array(String)"), "created_at BETWEEN "+r.time(from)+" AND "+r.time(until)), func(rows driver.Rows) error {
			var key string
			var id uuid.UUID
			if err := rows.Scan(&key, &id); err != nil {
				return err
			}
			found[key] = append(found[key], storage.RecordKey{Org: org, ID: id})
			return nil
		})
	})
	return found, err
}
