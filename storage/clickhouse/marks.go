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

// markColumns are the columns of a mark, by table: the organisation, what names the node, and the time
// and the rest of the key.
var markColumns = map[string]string{
	"records":              "org, request_id, created_at",
	"content":              "org, request_id, created_at",
	"span_keys":            "org, request_id, created_at",
	"scores":               "org, request_id, learned_at",
	"late_properties":      "org, request_id, learned_at",
	"session_tags":         "org, session, learned_at",
	"views":                "org, name, updated_at",
	"conversation_changes": "org, conversation, changed_at",
}

// whatIsLost is what a truncated table had.
var whatIsLost = map[string]string{
	"records":              "records",
	"content":              "bodies of records",
	"span_keys":            "keys by which repeated spans are recognised",
	"scores":               "scores and feedback",
	"late_properties":      "properties that were set later",
	"session_tags":         "tags of sessions",
	"views":                "saved views",
	"conversation_changes": "conversations",
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
		if err := conn.Exec(ctx, "INSERT INTO "+table+" ("+markColumns[table]+") VALUES ('', '"+h.Journal.String()+"', '"+markTime+"')"); err != nil {
			return fmt.Errorf("marking ClickHouse's table %s: %w", table, explain(ctx, err))
		}
	}
	h.Database += withMarks
	return nil
}

// unmarked lists the tables without the mark of a node, in their order by name.
func unmarked(ctx context.Context, conn clickhouse.Conn, node uuid.UUID) (tables []string, err error) {
	var parts, marked []string
	for table, columns := range markColumns {
		tables = append(tables, table)
		names := strings.Split(columns, ", ")
		parts = append(parts, "SELECT '"+table+"' AS marked FROM "+table+" WHERE org = '' AND "+names[1]+" = '"+node.String()+"' AND "+names[2]+" = toDateTime64('"+markTime+"', 3, 'UTC')")
	}
	if err := eachRow(ctx, conn, "SELECT DISTINCT marked FROM ("+strings.Join(parts, " UNION ALL ")+")", nil, textTo(&marked)); err != nil {
		return nil, err
	}
	slices.Sort(tables)
	return slices.DeleteFunc(tables, func(table string) bool { return slices.Contains(marked, table) }), nil
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
	return fmt.Sprintf("has lost its table %s, or an older copy of it was put back: this node's %s may be gone", table, whatIsLost[table])
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
