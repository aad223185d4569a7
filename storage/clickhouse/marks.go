package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Each node has a row in each table, of no organisation, that nothing deletes: erasures and queries
// name an organisation, and its time comes after all retention. A table without it was truncated, or
// is an older copy. The node's checkpoint says that the rows were written (storage.Host.Database).

// markedTables are the tables with marks, by name. Beside the organisation, a mark has the node in the column
// name, and markTime in the column time. content is what a truncated table had.
var markedTables = map[string]struct{ name, time, content string }{
	"records":              {"request_id", "created_at", "records"},
	"content":              {"request_id", "created_at", "bodies of records"},
	"span_keys":            {"request_id", "created_at", "keys by which repeated spans are recognised"},
	"scores":               {"request_id", "learned_at", "scores and feedback"},
	"late_properties":      {"request_id", "learned_at", "properties that were set later"},
	"session_tags":         {"session", "learned_at", "tags of sessions"},
	"views":                {"name", "updated_at", "saved views"},
	"conversation_changes": {"conversation", "changed_at", "conversations"},
}

// markTime is later than what any retention deletes.
const markTime = "2100-01-01 00:00:00"

// Mark implements storage.Marker: it writes the marks that tables lack.
func (b *Backend) Mark(ctx context.Context, h *storage.Host) error {
	if strings.HasSuffix(h.Database, withMarks) {
		return nil
	}
	conn, _, err := b.opened()
	if err != nil {
		return err
	}
	tables, err := unmarked(ctx, conn, h.Journal)
	if err != nil {
		return fmt.Errorf("reading the marks of ClickHouse's tables: %w", explain(ctx, err))
	}
	ctx = clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{"async_insert": 0, "insert_deduplicate": 0, "insert_quorum": 0}))
	for _, table := range tables {
		if err := conn.Exec(ctx, "INSERT INTO "+table+" (org, "+markedTables[table].name+", "+markedTables[table].time+") VALUES ('', '"+h.Journal.String()+"', '"+markTime+"')"); err != nil {
			return fmt.Errorf("marking ClickHouse's table %s: %w", table, explain(ctx, err))
		}
	}
	h.Database += withMarks
	return nil
}

// unmarked lists the tables without the mark of a node, in their order by name.
func unmarked(ctx context.Context, conn clickhouse.Conn, node uuid.UUID) (tables []string, err error) {
	var parts, found []string
	for table, mark := range markedTables {
		tables = append(tables, table)
		parts = append(parts, "SELECT '"+table+"' AS marked FROM "+table+" WHERE org = '' AND "+mark.name+" = '"+node.String()+"' AND "+mark.time+" = toDateTime64('"+markTime+"', 3, 'UTC')")
	}
	if err := eachRow(ctx, conn, "SELECT DISTINCT marked FROM ("+strings.Join(parts, " UNION ALL ")+")", nil, textTo(&found)); err != nil {
		return nil, err
	}
	slices.Sort(tables)
	return slices.DeleteFunc(tables, func(table string) bool { return slices.Contains(found, table) }), nil
}

// truncated lists the tables that have lost the mark of a node. A replica that has not fetched a mark
// yet has lost nothing: it is waited for.
func (b *Backend) truncated(ctx context.Context, conn clickhouse.Conn, node uuid.UUID) (tables []string, err error) {
	tables, err = unmarked(ctx, conn, node)
	if err != nil || len(tables) == 0 || b.config.Cluster == "" {
		return tables, err
	}
	ctx, cancel := b.changing(ctx)
	defer cancel()
	o := b.options()
	o.MaxOpenConns, o.MaxIdleConns = 1, 1 // all statements go to one replica
	one, err := clickhouse.Open(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	for _, table := range tables {
		if err := one.Exec(ctx, syncReplica(table)); err != nil {
			return nil, fmt.Errorf("this node's row is not in the table %s, and its replica cannot be brought up to date: %w", table, err)
		}
	}
	return unmarked(ctx, one, node)
}

// syncReplica is the statement that waits until a replica has what others had of a table.
func syncReplica(table string) string { return "SYSTEM SYNC REPLICA " + table + " LIGHTWEIGHT" }

// lost says what is lost with a table.
func lost(table string) string {
	return fmt.Sprintf("has lost its table %s, or an older copy of it was put back: this node's %s may be gone", table, markedTables[table].content)
}

// Verify implements storage.Verifier: it looks for tables that were truncated. The next Open
// takes the loss into account, and they are marked again.
func (b *Backend) Verify(ctx context.Context) (problems []string, err error) {
	conn, _, err := b.opened()
	if err != nil {
		return nil, err
	}
	tables, err := b.truncated(ctx, conn, b.node)
	for _, table := range tables {
		problems = append(problems, lost(table))
	}
	if err != nil {
		err = explain(ctx, err)
	}
	return problems, err
}
