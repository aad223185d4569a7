package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/weirhq/weir/storage"
)

// params are the values of a query's statements. What is bound for one statement may
// stand in all statements.
type params struct{ args []any }

// newParams has the organisation. Every statement names the organisation for every table.
func newParams(org string) *params {
	return &params{[]any{clickhouse.Named("org", org)}}
}

// ofOrg is the condition that every table stands under. Rows without an organisation are marks.
const ofOrg = "org = {org:String} AND {org:String} != ''"

// bind is the placeholder of a value of a type of ClickHouse's.
func (p *params) bind(v any, kind string) string {
	name := fmt.Sprintf("p%d", len(p.args))
	p.args = append(p.args, clickhouse.Named(name, v))
	return "{" + name + ":" + kind + "}"
}

func (p *params) text(s string) string { return p.bind(s, "String") }

func (p *params) integer(n int64) string { return p.bind(n, "Int64") }

// The moments that DateTime64 has.
const (
	firstMoment storage.Timestamp = -2_208_988_800_000 // 1900-01-01
	lastMoment  storage.Timestamp = 10_413_791_999_999 // 2299-12-31
)

// time is a moment as columns have it.
func (p *params) time(t storage.Timestamp) string {
	return "fromUnixTimestamp64Milli(" + p.integer(int64(min(max(t, firstMoment), lastMoment))) + ", 'UTC')"
}

// reader runs statements for one query.
type reader struct {
	conn  clickhouse.Conn
	trace func(string)
	// sortable bounds the requests that Weir sorts by properties.
	sortable int
	*params
}

// withOwnParams is a reader that binds values of its own.
func (r *reader) withOwnParams() *reader {
	return &reader{r.conn, r.trace, r.sortable, &params{r.args[:1:1]}}
}

// query calls each with the rows of a statement.
func (r *reader) query(ctx context.Context, statement string, each func(driver.Rows) error) error {
	if r.trace != nil {
		r.trace(statement)
	}
	return eachRow(ctx, r.conn, statement, r.args, each)
}

// eachRow calls each with the rows of a statement.
func eachRow(ctx context.Context, conn clickhouse.Conn, statement string, args []any, each func(driver.Rows) error) error {
	rows, err := conn.Query(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// textTo appends the text of each row.
func textTo(all *[]string) func(driver.Rows) error {
	return func(rows driver.Rows) error {
		var text string
		err := rows.Scan(&text)
		*all = append(*all, text)
		return err
	}
}

// settings hold for every statement, of queries, inserts and the schema. A context that
// ends earlier bounds its time more. The settings of Config.Options come before them.
var settings = clickhouse.Settings{
	"max_execution_time":        60, // seconds
	"max_memory_usage":          int64(defaultQueryMemory),
	"max_result_rows":           5_000_000, // groups that Weir holds in memory; records come in chunks
	"interactive_delay":         20_000,    // microseconds until the server sees that the client has cancelled
	"transform_null_in":         0,
	"allow_statistics_optimize": 0, // reads files of each part to plan what the primary key decides
	"max_query_size":            16 << 20,
	"max_ast_elements":          1_000_000,
	"max_expanded_ast_elements": 1_000_000,
}

// all joins conditions.
func all(conditions ...string) string { return strings.Join(conditions, " AND ") }
