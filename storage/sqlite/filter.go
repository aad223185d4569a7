package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlfilter"
)

// condition writes the WHERE clause of a query: requests are r. Values are only
// ever bound.
type condition struct {
	ctx  context.Context
	r    reader
	sql  strings.Builder
	args []driver.Value
	// err is the first error of looking names up; the clause is void with it.
	err error
	// filter is the filter of the query.
	filter *sqlfilter.Condition
	// byLabel is true when the clause expects the rows of one label, as l,
	// joined with their requests, and byUser when the index on users finds them.
	byLabel, byUser bool
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
// have an index on requests, else a property or asset, which the table labels has.
func (c *condition) query(q *storage.RequestQuery) {
	c.write("r.org = ?", c.lookup("org", q.Org))
	for _, chosen := range sqlfilter.Chosen(c, q) {
		c.and(chosen)
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
	if len(parts) > 0 {
		c.and(c.filter.All(parts...))
	}
	if c.byUser {
		c.write(" AND (r.n >> 43) IN " + anyBucket)
	}
	if len(labels) > 0 && !indexed {
		c.rarestFirst(labels)
		c.byLabel = true
		c.write(" AND l."+inAnyBucket+" AND l.label = ?", labels[0])
		labels = labels[1:]
	}
	for _, label := range labels {
		c.write(" AND EXISTS (SELECT 1 FROM labels WHERE bucket = r.n >> 43 AND label = ? AND n = r.n)", label)
	}
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
		n := c.integer("SELECT count(*) FROM (SELECT 1 FROM labels WHERE "+inAnyBucket+" AND label = ? LIMIT ?)", labels[i], int64(enough))
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
