package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
	"github.com/weirhq/weir/storage/sqlfilter"
)

// condition writes the WHERE clause of a query: requests are r. Values are only
// ever bound.
type condition struct {
	ctx  context.Context
	r    reader
	sql  strings.Builder
	args []driver.Value
	// from and to bound the keys of the records that the query can choose.
	from, to int64
	// err is the first error of looking names up; the clause is void with it.
	err error
	// filter is the filter of the query.
	filter *sqlfilter.Condition
	// byLabel is true when the clause expects the rows of one label, as l,
	// joined with their requests, and byUser when the index on users finds them.
	byLabel, byUser bool
	// byContent is true when the clause expects keys of records with content, which
	// each finds.
	byContent bool
	keys      string
}

// source is the FROM of the clause, with its arguments. The tables are read in this order:
// without statistics SQLite would go through requests.
func (c *condition) source() (string, []driver.Value) {
	switch {
	case c.byLabel:
		return " FROM labels l CROSS JOIN requests r ON r.n = l.n", nil
	case c.byContent:
		return " FROM json_each(?) k CROSS JOIN requests r ON r.n = k.value", []driver.Value{c.keys}
	}
	return " FROM requests r", nil
}

// key is the column with the keys in the table that is read first.
func (c *condition) key() string {
	if c.byLabel {
		return "l.n"
	}
	return "r.n"
}

// newCondition begins the clause of a query about a window.
func newCondition(ctx context.Context, r reader, w storage.Window) condition {
	return condition{ctx: ctx, r: r, from: columnar.FirstKey(w.From), to: columnar.LastKey(w.To)}
}

func (c *condition) write(sql string, args ...driver.Value) {
	c.sql.WriteString(sql)
	c.args = append(c.args, args...)
}

func (c *condition) and(cl sqlfilter.Clause) {
	c.write(" AND "+cl.SQL, cl.Args...)
}

// query writes all conditions that choose the records of a query. The conjunct of the
// filter that says best where the records stand comes first: an id or a user, which
// have an index on requests, else a property or asset, which the table labels has, else any
// list of keys. The other conditions are tested on each record that this one finds.
func (c *condition) query(q *storage.RequestQuery) {
	c.narrow(q)
	c.write("r.org = ?", c.lookup("org", q.Org))
	if c.from > columnar.FirstKey(storage.Always.From) || c.to < columnar.LastKey(storage.Always.To) {
		c.write(" AND r.n BETWEEN ? AND ?", c.from, c.to) // before all other bounds: SQLite reads the rows within the first ones
	}
	c.filter = sqlfilter.Compile(c, q.Filter)
	var parts []storage.Filter
	var labels []int64
	indexed := false
	for part := range storage.Conjuncts(c.filter.Prefilter) {
		column := indexedBy(part)
		indexed = indexed || column != ""
		c.byUser = c.byUser || column == "user"
		if l, ok := part.(*storage.Leaf); ok && l.Op == storage.Equals && labelKind(l) != "" && len(labels) < maxLabels {
			labels = append(labels, c.lookup(labelKind(l), l.Text))
			continue
		}
		parts = append(parts, part)
	}
	chosen := sqlfilter.Chosen(c, q)
	if !indexed && len(labels) == 0 {
		others := len(chosen) + len(parts)
		chosen, parts = c.access(chosen, parts)
		c.byContent = len(chosen)+len(parts) == others && !storage.MatchesWithoutContent(c.filter.Residual)
	}
	for _, condition := range chosen {
		c.and(condition)
	}
	if len(parts) > 0 {
		c.and(c.filter.All(parts...))
	}
	if c.byUser {
		c.write(" AND (r.n >> 43)"+inWindow, c.buckets()...)
	}
	if len(labels) > 0 && !indexed {
		c.rarestFirst(labels)
		c.byLabel = true
		c.write(" AND l."+inBuckets+" AND l.label = ? AND l.n BETWEEN ? AND ?", append(c.buckets(), labels[0], c.from, c.to)...)
		labels = labels[1:]
	}
	for _, label := range labels {
		c.write(" AND EXISTS (SELECT 1 FROM labels WHERE bucket = r.n >> 43 AND label = ? AND n = r.n)", label)
	}
}

// narrow narrows the bounds to those that the filter of a query has, and its cursor.
func (c *condition) narrow(q *storage.RequestQuery) {
	if desc, ok := q.ByTime(); ok && q.After != nil {
		ms, _ := q.After.Values[0].Any().(int64)
		if at := storage.Timestamp(ms); desc {
			c.to = min(c.to, columnar.LastKey(at))
		} else {
			c.from = max(c.from, columnar.FirstKey(at))
		}
	}
	for part := range storage.Conjuncts(q.Filter) {
		l, ok := part.(*storage.Leaf)
		if !ok || l.Field.Column == nil || l.Field.Column.Name != "created_at" {
			continue
		}
		if l.Op == storage.GTE || l.Op == storage.GT || l.Op == storage.Equals {
			c.from = max(c.from, columnar.FirstKey(l.Time))
		}
		if l.Op == storage.LTE || l.Op == storage.LT || l.Op == storage.Equals {
			c.to = min(c.to, columnar.LastKey(l.Time))
		}
	}
}

// buckets are the first and the last bucket of the window.
func (c *condition) buckets() []driver.Value {
	return []driver.Value{bucketOf(c.from), bucketOf(c.to)}
}

// access writes the first condition whose lists find the records, and returns the others. No
// other list may find records: SQLite could go through both, one for each row of the other.
func (c *condition) access(chosen []sqlfilter.Clause, parts []storage.Filter) ([]sqlfilter.Clause, []storage.Filter) {
	find := func(condition sqlfilter.Clause) {
		condition.SQL = strings.ReplaceAll(condition.SQL, listed, finds)
		c.and(condition)
	}
	for i, condition := range chosen {
		if strings.HasPrefix(condition.SQL, listed) {
			find(condition)
			return slices.Delete(chosen, i, i+1), parts
		}
	}
	if i := slices.IndexFunc(parts, c.findsRecords); i >= 0 {
		find(c.filter.All(parts[i]))
		parts = slices.Delete(parts, i, i+1)
	}
	return chosen, parts
}

// findsRecords reports whether indexes or lists find all records that a filter chooses.
func (c *condition) findsRecords(f storage.Filter) bool {
	b, ok := f.(*storage.Branch)
	switch {
	case !ok:
		sql := c.filter.All(f).SQL
		return strings.HasPrefix(sql, listed) || strings.HasPrefix(sql, "r.session = ") || strings.HasPrefix(sql, "r.root = ")
	case b.Or:
		return c.findsRecords(b.Left) && c.findsRecords(b.Right)
	}
	return c.findsRecords(b.Left) || c.findsRecords(b.Right)
}

// maxLabels bounds the labels that stand in a chain, which is not balanced.
const maxLabels = 100

// reads returns what must be read of records to match the rest of the filter.
func (c *condition) reads() *projection {
	for l := range storage.Leaves(c.filter.Residual) {
		if l.Field.Content == 0 {
			return wholeRecord
		}
	}
	return contentOnly
}

// indexedBy is the column of requests with an index that finds what f chooses, "" if there is no
// such index.
func indexedBy(f storage.Filter) string {
	l, ok := f.(*storage.Leaf)
	if !ok || l.Op != storage.Equals || l.Field.Column == nil {
		return ""
	}
	if column := l.Field.Column.Name; column == "request_id" || column == "user" && l.Text != "" {
		return column
	}
	return ""
}

// rarestFirst swaps the label of the fewest records to the front; it counts no
// further than matters.
func (c *condition) rarestFirst(labels []int64) {
	const enough = 1000
	least := int64(enough)
	for i := 0; len(labels) > 1 && i < len(labels); i++ {
		n := c.integer("SELECT count(*) FROM (SELECT 1 FROM labels WHERE "+inBuckets+" AND label = ? AND n BETWEEN ? AND ? LIMIT ?)", append(c.buckets(), labels[i], c.from, c.to, int64(enough))...)
		if n < least {
			least = n
			labels[0], labels[i] = labels[i], labels[0]
		}
	}
}

// lookup is the id of a name, 0 when no record has it.
func (c *condition) lookup(kind, name string) int64 {
	return c.integer("SELECT id FROM names WHERE "+isName, nameArgs(kind, name)...)
}

func (c *condition) integer(query string, args ...driver.Value) int64 {
	if c.err != nil {
		return 0
	}
	var n int64
	n, c.err = c.r.c.integer(c.ctx, query, args...)
	return n
}
