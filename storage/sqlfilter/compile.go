// Package sqlfilter compiles what a query asks of requests to SQL: its filter, its order and
// its cursor. A database says in a Dialect what it keeps in its own way.
//
// Its tests are storagetest, through the backends that compile to SQL.
package sqlfilter

import (
	"database/sql/driver"
	"math/bits"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Clause is a part of a statement. As a condition it is true or false, and never NULL.
type Clause struct {
	SQL string
	// Args are the values of the placeholders, in their order, unless the Dialect binds
	// values by name.
	Args []driver.Value
	// Support says how well the condition stands for a leaf.
	Support storage.Support
}

// Exactly is a condition that is true of the same records as a leaf.
func Exactly(sql string, args ...driver.Value) Clause { return Clause{sql, args, storage.Exact} }

// Unsupported stands for a leaf that SQL does not decide.
var Unsupported Clause

// NotIf negates a condition if yes.
func (c Clause) NotIf(yes bool) Clause {
	if yes {
		c.SQL = "NOT (" + c.SQL + ")"
	}
	return c
}

// Always is true of all records, Never of no record.
const (
	Always = "1"
	Never  = "0"
)

// Dialect is what a database keeps in its own way. Conditions are about one request.
type Dialect interface {
	// Bind returns the placeholder of a value.
	Bind(v driver.Value) Clause
	// BindID returns the placeholder of a request's id.
	BindID(id uuid.UUID) Clause
	// Value returns the value of a column, NULL if a record has no value. Times are in
	// milliseconds.
	Value(c *storage.Column) string
	// Lacks is true of records without a value in a column.
	Lacks(c *storage.Column) Clause
	// Known returns a comparison that is false where it would be NULL.
	Known(comparison string) string
	// CreatedAt compares the time of the request.
	CreatedAt(op storage.Operator, t storage.Timestamp) Clause
	// Text compares a column of text, or an id by another operator than Equals.
	Text(l *storage.Leaf) Clause
	// Label compares a property, the name of a property, or the assets.
	Label(l *storage.Leaf) Clause
	// Scored is true of records with the named score if the column of the score compares
	// with v by operator. column is value, feedback_id or feedback_created_at.
	Scored(name, column, operator string, v driver.Value) Clause
	// AnyScore is true of records with a score.
	AnyScore() Clause
	// Property returns the value of a property to sort by, NULL if a record lacks the
	// property. place is the index of the sort key.
	Property(place int, name string) string
}

// Condition is a compiled filter: the part that SQL decides, and the part that is left.
type Condition struct {
	storage.Plan
	leaves map[*storage.Leaf]Clause
}

// Exact reports whether SQL alone decides.
func (c *Condition) Exact() bool { return c.Residual == storage.All{} }

// SQLite bounds how deep expressions nest (https://sqlite.org/limits.html), and so does
// ClickHouse. Weir bounds how many there are.
const (
	maxDepth  = 200
	maxLeaves = 1000
)

// Compile compiles a filter. If the filter is too large for SQL, SQL decides no part.
func Compile(d Dialect, f storage.Filter) *Condition {
	c := &Condition{storage.Plan{Prefilter: storage.All{}, Residual: f}, make(map[*storage.Leaf]Clause)}
	if !fits(f) {
		return c
	}
	c.Plan = storage.PlanFilter(f, func(l *storage.Leaf) storage.Support {
		compiled, ok := c.leaves[l]
		if !ok {
			compiled = leaf(d, l)
			c.leaves[l] = compiled
		}
		return compiled.Support
	})
	return c
}

// fits is false for a filter that is too large for SQL.
func fits(f storage.Filter) bool {
	leaves := 0
	var fit func(f storage.Filter, depth int) bool
	fit = func(f storage.Filter, depth int) bool {
		b, ok := f.(*storage.Branch)
		if !ok {
			leaves++
			return leaves <= maxLeaves
		}
		operands := operandsOf(b)
		depth += bits.Len(uint(len(operands))) // of a balanced tree
		return depth <= maxDepth && !slices.ContainsFunc(operands, func(o storage.Filter) bool { return !fit(o, depth) })
	}
	return fit(f, 0)
}

// operandsOf are what the branch and the branches below it join by its operator.
func operandsOf(b *storage.Branch) []storage.Filter {
	if b.Or {
		return slices.Collect(storage.Disjuncts(b))
	}
	return slices.Collect(storage.Conjuncts(b))
}

// All is true of the records that match all the given parts of the Prefilter.
func (c *Condition) All(parts ...storage.Filter) Clause {
	var all writer
	all.join(c.leaves, parts, " AND ")
	return Exactly(all.String(), all.args...)
}

type writer struct {
	strings.Builder
	args []driver.Value
}

// join writes operands as a balanced tree.
func (w *writer) join(leaves map[*storage.Leaf]Clause, operands []storage.Filter, operator string) {
	switch half := len(operands) / 2; len(operands) {
	case 0:
		w.WriteString(Always)
	case 1:
		w.filter(leaves, operands[0])
	default:
		w.WriteString("(")
		w.join(leaves, operands[:half], operator)
		w.WriteString(operator)
		w.join(leaves, operands[half:], operator)
		w.WriteString(")")
	}
}

func (w *writer) filter(leaves map[*storage.Leaf]Clause, f storage.Filter) {
	switch f := f.(type) {
	case *storage.Branch:
		operator := " AND "
		if f.Or {
			operator = " OR "
		}
		w.join(leaves, operandsOf(f), operator)
	case *storage.Leaf:
		w.WriteString(leaves[f].SQL)
		w.args = append(w.args, leaves[f].Args...)
	default:
		w.WriteString(Always)
	}
}

// Chosen are the conditions of a query besides its filter.
func Chosen(d Dialect, q *storage.RequestQuery) (conditions []Clause) {
	flag := func(want *bool, condition Clause) {
		if want != nil {
			conditions = append(conditions, condition.NotIf(!*want))
		}
	}
	flag(q.Cached, d.Lacks(cacheReference).NotIf(true))
	flag(q.Experiment, d.Lacks(column("experiment")).NotIf(true))
	flag(q.Scored, d.AnyScore())
	return conditions
}

// column is the column of a name.
func column(name string) *storage.Column {
	i := slices.IndexFunc(storage.Columns, func(c *storage.Column) bool { return c.Name == name })
	return storage.Columns[i]
}

var cacheReference = column("cache_reference")
