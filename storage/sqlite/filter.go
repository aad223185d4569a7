package sqlite

import (
	"context"
	"database/sql/driver"
	"math/bits"
	"slices"
	"strings"

	"github.com/weirhq/weir/storage"
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
	// compiled are the leaves of the filter.
	compiled map[*storage.Leaf]clause
	// residual is what a storage.Matcher decides on the records of the clause.
	residual storage.Filter
	// byLabel is true when the clause expects the rows of one label, as l,
	// joined with their requests, and byUser when the index on users finds them.
	byLabel, byUser bool
}

func (c *condition) write(sql string, args ...driver.Value) {
	c.sql.WriteString(sql)
	c.args = append(c.args, args...)
}

func (c *condition) and(cl clause) {
	c.write(" AND "+cl.sql, cl.args...)
}

// query writes all that chooses the records of a query. Among the conjuncts of
// its filter, the one which says best where the records stand leads: an id or a
// user, which have an index on requests, else a property or asset, which has the
// table labels.
func (c *condition) query(q *storage.RequestQuery) {
	c.write("r.org = ?", c.lookup("org", q.Org))
	if q.Cached != nil {
		c.and(notNull("r.cache_reference").notIf(!*q.Cached))
	}
	if q.Experiment != nil {
		c.and(notNull("r.experiment").notIf(!*q.Experiment))
	}
	if q.Scored != nil {
		c.and(exactly("r.n IN (SELECT n FROM scores)").notIf(!*q.Scored))
	}
	plan := storage.Plan{Prefilter: storage.All{}, Residual: q.Filter}
	if compiles(q.Filter) {
		plan = storage.PlanFilter(q.Filter, c.support)
	}
	c.residual = plan.Residual
	var parts []storage.Filter
	var labels []int64
	indexed := false
	for part := range storage.Conjuncts(plan.Prefilter) {
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
		c.write(" AND ")
		c.join(parts, " AND ")
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

// support compiles a leaf, and tells how well.
func (c *condition) support(l *storage.Leaf) storage.Support {
	compiled, ok := c.compiled[l]
	if !ok {
		if c.compiled == nil {
			c.compiled = make(map[*storage.Leaf]clause)
		}
		compiled = c.leaf(l)
		c.compiled[l] = compiled
	}
	return compiled.support
}

// exact tells whether the clause alone decides.
func (c *condition) exact() bool { return c.residual == storage.All{} }

// reads is what the residual reads of records.
func (c *condition) reads() *projection {
	for l := range storage.Leaves(c.residual) {
		if l.Field.Content == 0 {
			return wholeRecord
		}
	}
	return contentOnly
}

// indexedBy is the column of requests whose index finds what makes f true, "" if none does.
func indexedBy(f storage.Filter) string {
	l, ok := f.(*storage.Leaf)
	if !ok || l.Op != storage.Equals {
		return ""
	}
	if column := columnOf(l.Field); column == "request_id" || column == "user" && l.Text != "" {
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

// SQLite bounds how deep expressions nest (https://sqlite.org/limits.html); a
// chain of one operator nests no deeper than its logarithm.
const (
	maxDepth  = 200
	maxLeaves = 1000
	maxLabels = 100 // which stand in a chain that is not balanced
)

// compiles is false of a filter that is too large for SQL, which storage.Matcher
// decides on alone.
func compiles(f storage.Filter) bool {
	type part struct {
		storage.Filter
		depth int
	}
	leaves := 0
	rest := []part{{f, 0}}
	for len(rest) > 0 {
		p := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		b, ok := p.Filter.(*storage.Branch)
		if !ok {
			leaves++
		} else {
			operands := operandsOf(b)
			p.depth += bits.Len(uint(len(operands)))
			for _, operand := range operands {
				rest = append(rest, part{operand, p.depth})
			}
		}
		if p.depth > maxDepth || leaves > maxLeaves {
			return false
		}
	}
	return true
}

// operandsOf are what the branch and the branches below it join by its operator.
func operandsOf(b *storage.Branch) []storage.Filter {
	if b.Or {
		return slices.Collect(storage.Disjuncts(b))
	}
	return slices.Collect(storage.Conjuncts(b))
}

// filter writes a filter of leaves that are compiled.
func (c *condition) filter(f storage.Filter) {
	switch f := f.(type) {
	case *storage.Branch:
		operator := " AND "
		if f.Or {
			operator = " OR "
		}
		c.join(operandsOf(f), operator)
	case *storage.Leaf:
		c.write(c.compiled[f].sql, c.compiled[f].args...)
	default:
		c.write(always)
	}
}

// join writes operands as a balanced tree.
func (c *condition) join(operands []storage.Filter, operator string) {
	switch half := len(operands) / 2; len(operands) {
	case 0:
		c.write(always)
	case 1:
		c.filter(operands[0])
	default:
		c.write("(")
		c.join(operands[:half], operator)
		c.write(operator)
		c.join(operands[half:], operator)
		c.write(")")
	}
}

// columnOf is the name of the column that a field compares, "" if there is none.
func columnOf(f *storage.Field) string {
	if f.Column == nil {
		return ""
	}
	return f.Column.Name
}
