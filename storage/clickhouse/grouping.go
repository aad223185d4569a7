package clickhouse

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlfilter"
)

// grouping answers a group query with GROUP BY: one statement for the groups of all
// dimensions and for their cells.
type grouping struct {
	*reader
	query *storage.GroupQuery
	where *condition
	tags  map[string]string

	// keys are the expressions of the sets' keys: arrays of texts. arrays[i] is true if set i makes
	// several rows of a record, and so needs a statement of its own.
	keys   []string
	arrays []bool
	// conditions are those of query.Any.
	conditions []string
	// bucket is the expression of the start of a cell, in milliseconds; "" if there are no cells.
	bucket string
	// clock is the expression of the local time in milliseconds; "" unless the query counts days.
	clock string
}

// noKey is the key of the single group of a query without dimensions. The server need not
// group by it.
const noKey = "CAST([], 'Array(String)')"

// compile sets the expressions of the statements. ok is false if the server alone cannot answer the
// query.
func (g *grouping) compile(ctx context.Context) (ok bool, err error) {
	q := g.query
	if !g.where.exact {
		return false, nil
	}
	for _, f := range q.Any {
		condition := g.params.where(f)
		if !condition.exact {
			return false, nil
		}
		g.conditions = append(g.conditions, condition.sql)
	}
	var texts []string
	for _, d := range q.By {
		text, ok, err := g.dimension(ctx, d)
		if !ok || err != nil {
			return false, err
		}
		texts = append(texts, text)
		if byName := d.Name == storage.ByPropertyName; q.Apart {
			g.keys, g.arrays = append(g.keys, "array("+text+")"), append(g.arrays, byName)
		} else if byName {
			return false, nil
		}
	}
	if !q.Apart {
		g.keys, g.arrays = []string{"array(" + strings.Join(texts, ", ") + ")"}, []bool{false}
		if len(texts) == 0 {
			g.keys = []string{noKey}
		}
	}
	if q.Known && len(texts) > 0 {
		g.where.sql = all(g.where.sql, texts[0]+" != ''")
	}
	if q.ActiveDays {
		if g.clock, ok = g.local(); !ok {
			return false, nil
		}
	}
	if !q.CountOnly {
		g.bucket, ok = g.cell()
	}
	return ok || q.CountOnly, nil
}

// dimension returns the expression of a record's value of a dimension, which is "" for a record without
// a value. ok is false if the server alone does not know the values.
func (g *grouping) dimension(ctx context.Context, d storage.Dimension) (text string, ok bool, err error) {
	switch d.Name {
	case "":
		return "''", true, nil
	case storage.BySessionName:
		return "session_name", true, nil
	case storage.BySessionTag: // whoever reads the groups adds the tag of the session
		return "''", g.query.GroupsBy(storage.BySession) && !g.query.Apart, nil
	case storage.ByScore:
		return "", false, nil
	case storage.ByProperty:
		late, err := g.anyLate(ctx, d.Property)
		return "properties[" + g.text(d.Property) + "]", !late, err
	case storage.ByTree:
		return "multiIf(root != " + noID + ", toString(root), request_id IN (SELECT root FROM records FINAL WHERE " + g.where.sql + "), toString(request_id), '')", true, nil
	case storage.ByPropertyName:
		late := false
		err := g.reader.query(ctx, "SELECT request_id FROM late_properties WHERE "+ofOrg+" LIMIT 1", func(driver.Rows) error {
			late = true
			return nil
		})
		return "arrayJoin(mapKeys(properties))", !late, err
	}
	f := storage.LookupField(storage.RequestResponse, string(d.Name))
	switch {
	case f.Name == "cached" || f.Column != nil && f.Kind == storage.Boolean:
		return "if(" + booleanOf(f) + ", 'true', 'false')", true, nil
	case f.Name == "status":
		return "ifNull(toString(status), '')", true, nil
	case f.Column != nil && f.Kind == storage.Text:
		return textOf(f.Column), true, nil
	}
	return "", false, nil
}

// millis is the expression of the time when a record was created, in milliseconds.
const millis = "toUnixTimestamp64Milli(created_at)"

// local returns the expression of the time that a clock in the query's zone shows, in milliseconds. It
// returns false if the clocks of the zone change too often in the window.
func (g *grouping) local() (string, bool) {
	at, offsets, ok := g.query.Zone.Changes(g.query.Window)
	switch {
	case !ok:
		return "", false
	case len(at) == 1:
		return "(" + millis + " + " + g.integer(offsets[0]) + ")", true
	}
	changes := g.bind(at, "Array(Int64)")
	return fmt.Sprintf("(%s + transform(roundDown(%[1]s, %s), %[2]s, %s, toInt64(0)))", millis, changes, g.bind(offsets, "Array(Int64)")), true
}

// cell returns the expression of the start of the cell that a record is in, "" if there are no cells.
// ok is false if the server cannot compute it.
func (g *grouping) cell() (cell string, ok bool) {
	q := g.query
	local, ok := g.local()
	const minute, day = 60_000, 24 * 60 * 60_000
	even := func(width, origin int64) string {
		return fmt.Sprintf("(%s - positiveModulo(%s - %s, %s))", millis, local, g.integer(origin), g.integer(width))
	}
	calendar := func(start string) string {
		return fmt.Sprintf("(toInt64(toUnixTimestamp(toDateTime(%s(fromUnixTimestamp64Milli(%s, 'UTC')), 'UTC'))) * 1000 - (%[2]s - %s))", start, local, millis)
	}
	starts := q.Buckets.Starts()
	switch {
	case q.Increment == storage.ByMinute:
		return even(minute, 0), ok
	case q.Increment == storage.ByHour:
		return even(60*minute, 0), ok
	case q.Increment != "" && q.Zone.Named():
		starts, ok = q.Increment.Starts(q.Window, q.Zone)
	case q.Increment == storage.ByDay:
		return even(day, 0), ok
	case q.Increment == storage.ByWeek:
		return even(7*day, 4*day), ok // from a Monday
	case q.Increment == storage.ByMonth:
		return calendar("toStartOfMonth"), ok
	case q.Increment == storage.ByYear:
		return calendar("toStartOfYear"), ok
	case q.Buckets.Len == 0:
		return "", true
	case starts == nil:
		start, width := g.integer(int64(q.Buckets.Start)), g.integer(int64(q.Buckets.Width))
		return fmt.Sprintf("(%[1]s + intDiv(%[2]s - %[1]s, %[3]s) * %[3]s)", start, millis, width), true
	}
	if len(starts) == 0 { // of a window that ends before it begins
		return millis, ok
	}
	return "roundDown(" + millis + ", " + g.bind(starts, "Array(Int64)") + ")", ok
}

// statement returns the query that groups by the keys of sets, and by their cells if there are cells. A
// totalsRow scans its rows. The inner query computes what the aggregates read, once for each record. In
// a query for the largest groups, the key of every other group becomes noKey, and all%d is the key
// before that.
func (g *grouping) statement(sets []int) string {
	q := g.query
	inner := []string{isAnswered + " AS answered", "created_at", "responded_at", "status", "end_state", "cost",
		"latency", "ttft", "input", "output", "cache_read", "cache_write", "reasoning", "cache_savings", "cache_loss",
		"cache_reference", "saved_cost", "routing_savings"}
	first := g.totals()
	var grouped, by []string
	for i, set := range sets {
		key := fmt.Sprintf("key%d", i)
		group := g.keys[set]
		if group == noKey {
			first, grouped = append(first, "toUInt64(0)"), append(grouped, noKey, "toUInt64(0)")
			continue
		}
		if q.Top.By == storage.LargestGroups && len(q.By) > 0 {
			inner = append(inner, fmt.Sprintf("%s AS all%d", group, i))
			group = fmt.Sprintf("if(%s IN (%s), %[1]s, %[3]s)", group, g.largest(set), noKey)
			first = append(first, fmt.Sprintf("uniqExact(all%d)", i))
		} else {
			first = append(first, "toUInt64(0)")
		}
		inner = append(inner, group+" AS "+key)
		grouped = append(grouped, key, "grouping("+key+")")
		if by = append(by, "("+key+")"); g.bucket != "" {
			by = append(by, "("+key+", cell)")
		}
	}
	cell := "toInt64(0), toUInt64(1)"
	if g.bucket != "" {
		inner, cell = append(inner, g.bucket+" AS cell"), "cell, grouping(cell)"
	}
	for i, condition := range g.conditions {
		inner = append(inner, fmt.Sprintf("toUInt8(%s) AS any%d", condition, i))
	}
	if q.ActiveDays {
		inner = append(inner, "floor("+g.clock+" / 86400000) AS day")
	}
	groups := ""
	if len(by) > 0 {
		groups = " GROUP BY GROUPING SETS (" + strings.Join(by, ", ") + ")"
	} else if g.bucket != "" {
		groups = " GROUP BY cell WITH ROLLUP" // the rollup adds up cells, not records again
	}
	return "SELECT " + strings.Join(slices.Concat(first, []string{cell}, grouped), ", ") +
		" FROM (SELECT " + strings.Join(inner, ", ") + " FROM records FINAL WHERE " + g.where.sql + ")" + groups
}

// requests returns the expression that counts the requests of a group.
func (g *grouping) requests() string {
	if g.query.CountOnly {
		return "count()"
	}
	return "countIf(answered)"
}

// isAnswered is false for an attempt that did not answer its call, and true for other records.
const isAnswered = "(attempt_of = " + noID + ")"

// largest returns the query for the keys of the largest groups of a set, after the page before.
func (g *grouping) largest(set int) string {
	having := ""
	sort := g.query.Top.GroupSort()
	if total, key, ok := g.query.AfterTotal(set); ok {
		next := "key > [" + g.text(key) + "]"
		if total.Valid {
			to := g.Bind(total.N)
			having = " HAVING " + sqlfilter.Behind(g, "total", sort.Desc, to, to, sqlfilter.Exactly(next)).SQL
		} else {
			having = " HAVING isNull(total) AND " + next
		}
	}
	total := sums[sort.Key]
	if sort.Key == "requests" {
		total = g.requests()
	}
	return fmt.Sprintf("SELECT key FROM (SELECT key, %s AS total FROM (SELECT *, %s AS key, %s AS answered FROM records FINAL WHERE %s) GROUP BY key%s ORDER BY total%s NULLS LAST, key LIMIT %s)",
		total, g.keys[set], isAnswered, g.where.sql, having, sqlfilter.Direction(sort.Desc), g.integer(int64(g.query.Top.Count)))
}

// answer runs a statement for each set that makes several rows of a record, and a single
// statement for all other sets.
func (g *grouping) answer(ctx context.Context, each func(*storage.GroupTotals) error) error {
	var together []int
	for set, array := range g.arrays {
		if !array {
			together = append(together, set)
		} else if err := g.answerSets(ctx, []int{set}, each); err != nil {
			return err
		}
	}
	if len(together) == 0 {
		return nil
	}
	return g.answerSets(ctx, together, each)
}

// answerGroup calls each with a group if it is wanted.
func (g *grouping) answerGroup(t *storage.GroupTotals, each func(*storage.GroupTotals) error) error {
	if !g.query.Chooses(t) {
		return nil
	}
	return each(t)
}

// answerSets calls each with the groups of sets: while it reads them if there are no cells, else when
// it has read the cells of all. A group over all records exists even if no record matches.
func (g *grouping) answerSets(ctx context.Context, sets []int, each func(*storage.GroupTotals) error) error {
	groups := make(map[string]*storage.GroupTotals)
	cells := make(map[string][]storage.Cell)
	answered := make(map[int]bool) // sets with any row
	row := newTotalsRow(g, sets)
	err := g.reader.query(ctx, g.statement(sets), func(rows driver.Rows) error {
		if err := rows.Scan(row.to...); err != nil {
			return err
		}
		t := row.group()
		answered[t.Set] = true
		if g.bucket == "" {
			return g.answerGroup(t, each)
		}
		id := fmt.Sprintf("%d %q", t.Set, t.Key)
		if row.isGroup == 0 {
			cells[id] = append(cells[id], storage.Cell{Start: storage.Timestamp(row.cell), Counts: t.Counts, Details: t.Details})
		} else {
			groups[id] = t
		}
		return nil
	})
	if err != nil {
		return err
	}
	for id, t := range groups {
		t.Cells = cells[id]
		if err := g.answerGroup(t, each); err != nil {
			return err
		}
	}
	for _, set := range sets {
		none := &storage.GroupTotals{Set: set, Any: make([]bool, len(g.query.Any))}
		if g.query.Details {
			none.Details = new(storage.Details)
		}
		switch {
		case answered[set]:
		case len(g.query.By) == 0:
			return each(none)
		case g.query.Apart && g.query.By[set] == (storage.Dimension{}):
			none.Key = []string{""}
			if err := each(none); err != nil {
				return err
			}
		}
	}
	return nil
}
