package clickhouse

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// A mark is a row by which a node notices that rows were lost. It has no organisation, and nothing deletes it:
// erasures and queries name an organisation, and retention ends before the mark's time. A node has a mark in
// each table: a table without it was truncated, or is an older copy. The node's checkpoint says that the marks
// were written (storage.Host.Database). A node also has a mark in each partition to which it has written, and
// the table partitions lists these partitions. One without its mark was dropped, but not by retention, which
// takes it off the list.

// markedTables are the tables with marks, by name.
var markedTables = map[string]struct {
	name      string // the column that has the node
	time      string // the column that has the mark's time
	content   string // what is lost with the table
	partition string // how Go formats the time for the names of partitions, "" for a table without
	item      string // a column that is set in the marks of partitions alone, "" for none
}{
	"records":              {"request_id", "created_at", "records", byDay, ""},
	"content":              {"request_id", "created_at", "bodies of records", byDay, ""},
	"span_keys":            {"request_id", "created_at", "keys by which repeated spans are recognised", byDay, ""},
	"scores":               {"request_id", "learned_at", "scores and feedback", byMonth, ""},
	"late_properties":      {"request_id", "learned_at", "properties that were set later", byMonth, ""},
	"session_tags":         {"session", "learned_at", "tags of sessions", byMonth, ""},
	"views":                {"name", "updated_at", "saved views", "", ""},
	"conversation_changes": {"conversation", "changed_at", "conversations", byDay, "item"},
	"partitions":           {"node", "marked_at", "list of the partitions that there must be", "", ""},
}

// partitionMarks is the table of the partitions that have a mark. Those that retention has dropped since
// are in it again, of no node, with a later time.
const partitionMarks = `CREATE TABLE IF NOT EXISTS partitions{cluster} (
	org        LowCardinality(String), -- none
	node       UUID, -- of the mark; none if retention has dropped the partition
	table_name LowCardinality(String),
	partition  LowCardinality(String), -- day or month
	marked_at  DateTime64(3, 'UTC')
) ENGINE = {replacing}(marked_at)
ORDER BY (org, node, table_name, partition)
SETTINGS {window} = 10000`

// partition is a partition of a table, which somebody can drop by hand.
type partition struct{ table, name string } // name is "" for the whole table

// partitionOf is the partition of a row, without a name if the table has none.
func partitionOf(table string, at storage.Timestamp) partition {
	layout := markedTables[table].partition
	if layout == "" || at == 0 {
		return partition{table, ""}
	}
	return partition{table, at.Time().UTC().Format(layout)}
}

// markTime is later than what any retention deletes.
const markTime = "2100-01-01 00:00:00"

// withMarkSettings returns a context for inserts of marks, of which equal ones may be written again.
func withMarkSettings(ctx context.Context) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithSettings(clickhouse.Settings{
		"async_insert": 0, "insert_deduplicate": 0, "insert_quorum": 0, "max_partitions_per_insert_block": 0,
	}))
}

// insertMarks writes the marks of a node into a table and its partitions.
func insertMarks(ctx context.Context, conn clickhouse.Conn, node uuid.UUID, table string, names []string) error {
	mark := markedTables[table]
	rows := make([]string, len(names))
	for i, name := range names {
		at, item := markTime, ""
		if name != "" {
			begins, err := time.Parse(mark.partition, name)
			if err != nil {
				return err
			}
			at, item = begins.Format(time.DateTime), "mark"
		}
		rows[i] = "('', '" + node.String() + "', '" + at + "'"
		if mark.item != "" {
			rows[i] += ", '" + item + "'"
		}
		rows[i] += ")"
	}
	columns := "org, " + mark.name + ", " + mark.time
	if mark.item != "" {
		columns += ", " + mark.item
	}
	if err := conn.Exec(withMarkSettings(ctx), "INSERT INTO "+table+" ("+columns+") VALUES "+strings.Join(rows, ", ")); err != nil {
		return fmt.Errorf("marking ClickHouse's table %s: %w", table, explain(ctx, err))
	}
	return nil
}

// listPartitions enters partitions of a table in the list.
func listPartitions(ctx context.Context, conn clickhouse.Conn, node uuid.UUID, table string, names []string) error {
	rows := make([]string, len(names))
	for i, name := range names {
		rows[i] = "('', '" + node.String() + "', '" + table + "', '" + name + "', now64(3))"
	}
	return conn.Exec(withMarkSettings(ctx), "INSERT INTO partitions (org, node, table_name, partition, marked_at) VALUES "+strings.Join(rows, ", "))
}

// markPartitions marks the partitions of rows that were written, unless they have the mark of this node.
// A partition is in the list once it has its mark.
func (b *Backend) markPartitions(ctx context.Context, conn clickhouse.Conn, table string, rows []row) (err error) {
	if b.node == uuid.Nil {
		return nil
	}
	if b.marked == nil {
		if b.marked, err = listedPartitions(ctx, conn, b.node); err != nil {
			return err
		}
	}
	var names []string
	for _, r := range rows {
		p := partitionOf(table, r.at)
		if p.name != "" && !b.marked[p] && !slices.Contains(names, p.name) {
			names = append(names, p.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	if err := insertMarks(ctx, conn, b.node, table, names); err != nil {
		return err
	}
	if err := listPartitions(ctx, conn, b.node, table, names); err != nil {
		return err
	}
	for _, name := range names {
		b.marked[partition{table, name}] = true
	}
	return nil
}

// unmarkPartitions says that retention drops partitions.
func (b *Backend) unmarkPartitions(ctx context.Context, conn clickhouse.Conn, table string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	for _, name := range names {
		delete(b.marked, partition{table, name})
	}
	return listPartitions(ctx, conn, uuid.Nil, table, names)
}

// Mark implements storage.Marker: it writes the marks that tables and partitions lack.
func (b *Backend) Mark(ctx context.Context, h *storage.Host) error {
	if strings.HasSuffix(h.Database, withMarks) {
		return nil
	}
	conn, _, err := b.opened()
	if err != nil {
		return err
	}
	missing, err := unmarkedPartitions(ctx, conn, h.Journal)
	if err != nil {
		return fmt.Errorf("reading the marks of ClickHouse's tables: %w", explain(ctx, err))
	}
	for len(missing) > 0 {
		table := missing[0].table
		var names []string
		for len(missing) > 0 && missing[0].table == table {
			names, missing = append(names, missing[0].name), missing[1:]
		}
		if err := insertMarks(ctx, conn, h.Journal, table, names); err != nil {
			return err
		}
	}
	h.Database += withMarks
	return nil
}

// listedPartitions are the partitions that have the mark of a node, as far as the list says.
func listedPartitions(ctx context.Context, conn clickhouse.Conn, node uuid.UUID) (map[partition]bool, error) {
	none := "'" + uuid.Nil.String() + "'"
	listed := make(map[partition]bool)
	err := eachRow(ctx, conn, "SELECT table_name, partition FROM partitions WHERE org = '' AND partition != '' AND node IN ("+none+", '"+node.String()+"')"+
		" GROUP BY table_name, partition HAVING argMax(node, partitions.marked_at) != "+none, nil, func(rows driver.Rows) error {
		var p partition
		err := rows.Scan(&p.table, &p.name)
		listed[p] = true
		return err
	})
	return listed, err
}

// unmarkedPartitions lists the tables and partitions without the mark of a node, in their order by table and name.
func unmarkedPartitions(ctx context.Context, conn clickhouse.Conn, node uuid.UUID) ([]partition, error) {
	candidates, err := listedPartitions(ctx, conn, node)
	if err != nil {
		return nil, err
	}
	var parts []string
	for table, mark := range markedTables {
		candidates[partition{table: table}] = true
		part := "SELECT '" + table + "' AS marked, " + mark.time + " AS at FROM " + table + " WHERE org = '' AND " + mark.name + " = '" + node.String() + "'"
		if mark.partition == "" {
			part += " AND at = toDateTime64('" + markTime + "', 3, 'UTC')"
		}
		parts = append(parts, part)
	}
	err = eachRow(ctx, conn, "SELECT DISTINCT marked, at FROM ("+strings.Join(parts, " UNION ALL ")+")", nil, func(rows driver.Rows) error {
		var table string
		var at time.Time
		err := rows.Scan(&table, &at)
		if at.Format(time.DateTime) == markTime {
			delete(candidates, partition{table: table})
		} else {
			delete(candidates, partitionOf(table, storage.Millis(at)))
		}
		return err
	})
	if err != nil || len(candidates) == 0 {
		return nil, err
	}
	// Retention may have dropped partitions after they were listed and before their marks were read.
	listed, err := listedPartitions(ctx, conn, node)
	maps.DeleteFunc(candidates, func(p partition, _ bool) bool { return p.name != "" && !listed[p] })
	return slices.SortedFunc(maps.Keys(candidates), func(a, b partition) int {
		return cmp.Or(strings.Compare(a.table, b.table), strings.Compare(a.name, b.name))
	}), err
}

// lostPartitions lists the tables and partitions that have lost the mark of a node. A replica that has not fetched a
// mark yet has lost nothing: it is waited for.
func (b *Backend) lostPartitions(ctx context.Context, conn clickhouse.Conn, node uuid.UUID) (missing []partition, err error) {
	missing, err = unmarkedPartitions(ctx, conn, node)
	if err != nil || len(missing) == 0 || b.config.Cluster == "" {
		return missing, err
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
	stale := []string{"partitions"}
	for _, p := range missing {
		if !slices.Contains(stale, p.table) {
			stale = append(stale, p.table)
		}
	}
	for _, table := range stale {
		if err := one.Exec(ctx, syncReplica(table)); err != nil {
			return nil, fmt.Errorf("this node's row is not in the table %s, and its replica cannot be brought up to date: %w", table, err)
		}
	}
	return unmarkedPartitions(ctx, one, node)
}

// syncReplica is the statement that waits until a replica has what others had of a table.
func syncReplica(table string) string { return "SYSTEM SYNC REPLICA " + table + " LIGHTWEIGHT" }

// maxNamed bounds the partitions that a text names.
const maxNamed = 5

// losses says what is lost with tables and partitions, by table: those of a lost table are not named.
func losses(missing []partition) map[string]string {
	names := make(map[string][]string)
	for _, p := range missing {
		names[p.table] = append(names[p.table], p.name)
	}
	texts := make(map[string]string)
	for table, names := range names {
		content := markedTables[table].content
		if names[0] == "" {
			texts[table] = fmt.Sprintf("has lost its table %s, or an older copy of it was put back: this node's %s may be gone", table, content)
			continue
		}
		also := ""
		if more := len(names) - maxNamed; more > 0 {
			names, also = names[:maxNamed], fmt.Sprintf(" and %d more", more)
		}
		texts[table] = fmt.Sprintf("has lost partitions of its table %s, which retention has not dropped: this node's %s of %s%s may be gone", table, content, strings.Join(names, ", "), also)
	}
	return texts
}

// Verify implements storage.Verifier: it looks for tables that were truncated, and for partitions that were
// dropped. The next Open takes the loss into account, and they are marked again.
func (b *Backend) Verify(ctx context.Context) (problems []string, err error) {
	conn, _, err := b.opened()
	if err != nil {
		return nil, err
	}
	missing, err := b.lostPartitions(ctx, conn, b.node)
	if err != nil {
		return nil, explain(ctx, err)
	}
	return slices.Sorted(maps.Values(losses(missing))), nil
}
