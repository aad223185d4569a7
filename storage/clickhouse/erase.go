package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/weirhq/weir/storage"
)

// erasedTables have rows about records, by what an erasure removes; of the table records, an
// erasure that leaves the record replaces values.
var erasedTables = map[storage.ErasureScope][]string{
	storage.EraseContent:  {"content"},
	storage.EraseIdentity: {"content", "late_properties", "span_keys"},
	storage.EraseRecord:   {"content", "late_properties", "span_keys", "scores"},
}

// EraseRecords implements storage.RecordEraser. Nobody reads the rows from then on; EraseUnused
// removes them from the files.
func (b *Backend) EraseRecords(ctx context.Context, org string, ids []uuid.UUID, scope storage.ErasureScope) error {
	return b.reading(ctx, org, "erasing records from ClickHouse", func(r *reader) error {
		if err := b.eraseItems(ctx, org, ids); err != nil {
			return err
		}
		these := r.these("request_id", ids)
		if scope > storage.EraseContent {
			if err := b.eraseTags(ctx, r, these); err != nil {
				return err
			}
		}
		// The records come last: as long as they are there, it is known what is left to erase.
		var changes errgroup.Group // a change waits for the server much more than it works
		for _, table := range erasedTables[scope] {
			changes.Go(func() error { return r.mutate(ctx, table, "DELETE FROM "+table+b.onCluster(), these) })
		}
		if err := changes.Wait(); err != nil {
			return err
		}
		change := "DELETE FROM records" + b.onCluster()
		if scope < storage.EraseRecord {
			change = "ALTER TABLE records" + b.onCluster() + " UPDATE " + strings.Join(erasedValues[scope], ", ")
		}
		return r.mutate(ctx, "records", change, these)
	})
}

// these is the condition that a column has one of some ids.
func (p *params) these(column string, ids []uuid.UUID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return column + " IN " + p.bind(texts, "Array(UUID)")
}

// eraseTags deletes the tags of sessions that these records alone have. It knows the tags before it
// knows whose records there are, and deletes no others: batches are written meanwhile, records first,
// and the tag of a session that gets a record stays with it.
func (b *Backend) eraseTags(ctx context.Context, r *reader, these string) error {
	const tag = "concat(toString(version), ' ', session)"
	var tags, sessions []string
	ofThese := all(ofOrg, "session != ''", "session IN (SELECT session FROM records WHERE "+all(ofOrg, these)+")")
	err := r.query(ctx, "SELECT "+tag+" FROM session_tags WHERE "+ofThese, textTo(&tags))
	if err != nil || len(tags) == 0 {
		return err
	}
	err = r.query(ctx, "SELECT session FROM records FINAL WHERE "+ofThese+" GROUP BY session HAVING countIf(NOT ("+these+")) = 0", textTo(&sessions))
	if err != nil || len(sessions) == 0 {
		return err
	}
	return r.mutate(ctx, "session_tags", "DELETE FROM session_tags"+b.onCluster(), all("session IN "+r.bind(sessions, "Array(String)"), tag+" IN "+r.bind(tags, "Array(String)")))
}

// mutate changes rows of the organisation, if there are any, at all replicas before it returns.
func (r *reader) mutate(ctx context.Context, table, change, these string) error {
	where := " WHERE " + all(ofOrg, these)
	found := false
	err := r.query(ctx, "SELECT 1 FROM "+table+where+" LIMIT 1", func(driver.Rows) error {
		found = true
		return nil
	})
	if err != nil || !found {
		return err
	}
	return r.conn.Exec(everywhere(ctx), change+where, r.args...)
}

// everywhere has a change wait for all replicas.
func everywhere(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"mutations_sync": 2, "lightweight_deletes_sync": 2}))
}

// EraseUnused implements storage.RecordEraser: the server writes the parts of tables anew that have
// rows which are hidden. It removes the old files some minutes later (old_parts_lifetime).
func (b *Backend) EraseUnused(ctx context.Context) error {
	conn, _, err := b.opened()
	if err != nil {
		return err
	}
	var hiding []string
	err = eachRow(ctx, conn, "SELECT DISTINCT table FROM system.parts WHERE database = currentDatabase() AND active AND has_lightweight_delete", nil, textTo(&hiding))
	var changes errgroup.Group
	for _, table := range hiding {
		changes.Go(func() error {
			return conn.Exec(everywhere(ctx), "ALTER TABLE "+quoteName(table)+b.onCluster()+" APPLY DELETED MASK")
		})
	}
	if err = cmp.Or(err, changes.Wait()); err != nil {
		return fmt.Errorf("erasing what is deleted from ClickHouse: %w", explain(ctx, err))
	}
	return nil
}

// erasedValues are what an erasure makes of the columns that it changes.
var erasedValues = map[storage.ErasureScope][]string{
	storage.EraseContent:  erasedColumns(storage.EraseContent, "assets = []"),
	storage.EraseIdentity: erasedColumns(storage.EraseIdentity, "assets = []", "properties = map()"),
}

// erasedColumns asks Record.Erased which columns an erasure changes.
func erasedColumns(scope storage.ErasureScope, also ...string) []string {
	values := also
	for _, c := range columns {
		r := new(storage.Record)
		c.Set(r, exampleOf(c))
		if reflect.DeepEqual(c.Get(r.Erased(scope)), c.Get(r)) {
			continue
		}
		values = append(values, c.Name+" = "+noneOf(c))
	}
	return values
}

// exampleOf is a value of a column that is there.
func exampleOf(c *storage.Column) any {
	switch c.Type() {
	case storage.TextColumn:
		return "x"
	case storage.IDColumn:
		id := uuid.UUID{1}
		return id[:]
	}
	return int64(1)
}

// noneOf is how the table has a value that is not there.
func noneOf(c *storage.Column) string {
	switch c.Type() {
	case storage.TextColumn:
		return "''"
	case storage.IDColumn:
		return noID
	case storage.FlagColumn:
		return "false"
	case storage.TimeColumn:
		return "fromUnixTimestamp64Milli(0, 'UTC')"
	}
	if c.NotNull() {
		return "0"
	}
	return "NULL"
}

var (
	_ storage.RecordEraser = (*Backend)(nil)
	_ storage.Eraser       = (*Backend)(nil)
)
