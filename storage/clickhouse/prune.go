package clickhouse

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/weirhq/weir/storage"
)

// Prune drops the days that lie before a time, bodies first, and the months of what
// was learned.
func (b *Backend) Prune(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	for _, table := range []string{"content", "records", "span_keys", "scores", "late_properties", "session_tags"} {
		if more, err = b.drop(ctx, table, before); more || err != nil {
			return more, err
		}
	}
	return false, nil
}

// PruneContent drops the bodies of the days that lie before a time.
func (b *Backend) PruneContent(ctx context.Context, before storage.Timestamp) (more bool, err error) {
	return b.drop(ctx, "content", before)
}

// maxDropped bounds the partitions of one call.
const maxDropped = 10

// drop drops the oldest partitions of a table that lie before a time.
func (b *Backend) drop(ctx context.Context, table string, before storage.Timestamp) (more bool, err error) {
	conn, _, err := b.opened()
	if err != nil {
		return false, err
	}
	dropping, cancel := b.changing(ctx)
	defer cancel()
	old, err := oldPartitions(dropping, conn, table, before)
	if err == nil {
		err = b.unmarkPartitions(dropping, conn, table, old[:min(maxDropped, len(old))])
	}
	for i := 0; i < len(old) && err == nil; i++ {
		if i == maxDropped {
			return true, nil
		}
		err = conn.Exec(dropping, "ALTER TABLE "+table+b.onCluster()+" DROP PARTITION ID '"+old[i]+"'")
	}
	if err != nil {
		return false, fmt.Errorf("deleting old partitions of %s from ClickHouse: %w", table, explain(ctx, err))
	}
	return false, nil
}

// The names of partitions, as Go formats them.
const (
	byDay   = "20060102"
	byMonth = "200601"
)

// oldPartitions are the ids of the partitions that have only rows from before a time. The ids
// of days and months are numbers. 0 is the id of the partition of rows which are kept longer.
func oldPartitions(ctx context.Context, conn clickhouse.Conn, table string, before storage.Timestamp) (ids []string, err error) {
	// In Go, since the server's functions end with the year 2149.
	limit := min(max(before, firstMoment), lastMoment).Time().UTC().Format(markedTables[table].partition)
	err = eachRow(ctx, conn, `SELECT DISTINCT partition_id FROM system.parts
		WHERE database = currentDatabase() AND table = {table:String} AND active AND toUInt32OrZero(partition_id) BETWEEN 1 AND toUInt32({limit:String}) - 1
		ORDER BY partition_id`, []any{clickhouse.Named("table", table), clickhouse.Named("limit", limit)}, textTo(&ids))
	return ids, err
}
