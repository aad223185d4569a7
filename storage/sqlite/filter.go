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
	// inexact is true when the clause lets records pass that the filter may
	// not: storage.Match decides then. content is true when it does for the sake
	// of their content.
	inexact, content bool
	// byLabel is true when the clause expects the rows of one label, as l,
	// joined with their requests.
	byLabel bool
}

func (c *condition) write(sql string, args ...driver.Value) {
	c.sql.WriteString(sql)
	c.args = append(c.args, args...)
}

// approximate writes a clause that is true of all records for which the leaf is,
// and of others.
func (c *condition) approximate(sql string) {
	c.inexact = true
	c.write(sql)
}

const (
	always = "1"
	never  = "0"
)

// is writes that the record has something in a column, or nothing.
func (c *condition) is(column string, there bool) {
	if there {
		c.write(column + " IS NOT NULL")
	} else {
		c.write(column + " IS NULL")
	}
}

// query writes all that chooses the records of a query. Among the conjuncts of
// its filter, the one which says best where the records stand leads: an id or a
// user, which have an index on requests, else a property or asset, which has the
// table labels.
func (c *condition) query(q *storage.RequestQuery) {
	c.write("r.org = ?", c.lookup("org", q.Org))
	if q.Cached != nil {
		c.write(" AND ")
		c.is("r.cache_reference", *q.Cached)
	}
	if q.Experiment != nil {
		c.write(" AND ")
		c.is("r.experiment", *q.Experiment)
	}
	if q.Scored != nil {
		c.write(" AND ")
		if !*q.Scored {
			c.write("NOT ")
		}
		c.write("r.n IN (SELECT n FROM scores)")
	}
	if !compiles(q.Filter) {
		c.inexact = true
		return
	}
	var parts []storage.Filter
	var labels []int64
	indexed := false
	for part := range storage.Conjuncts(q.Filter) {
		indexed = indexed || hasIndex(part)
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
	if len(labels) > 0 && !indexed {
		c.rarestFirst(labels)
		c.byLabel = true
		c.write(" AND l.label = ?", labels[0])
		labels = labels[1:]
	}
	for _, label := range labels {
		c.write(" AND EXISTS (SELECT 1 FROM labels WHERE label = ? AND n = r.n)", label)
	}
}

// undecided is what storage.Match has to decide of a filter whose clause has been
// written, nil if nothing, and what it must read of records.
func (c *condition) undecided(f storage.Filter) (storage.Filter, *projection) {
	switch {
	case c.inexact:
		return f, wholeRecord
	case !c.content:
		return nil, nil
	}
	var rest storage.Filter
	for part := range storage.Conjuncts(f) {
		if storage.ContentParts(part) == 0 {
			continue
		}
		for l := range storage.Leaves(part) {
			if l.Field.Content == 0 {
				return f, wholeRecord
			}
		}
		rest = both(rest, part)
	}
	return rest, contentOnly
}

// both joins two filters, of which a may be nil.
func both(a, b storage.Filter) storage.Filter {
	if a == nil {
		return b
	}
	return &storage.Branch{Left: a, Right: b}
}

// hasIndex tells whether an index on requests finds what makes f true.
func hasIndex(f storage.Filter) bool {
	l, ok := f.(*storage.Leaf)
	if !ok || l.Op != storage.Equals {
		return false
	}
	column := columnOf(l.Field)
	return column == "request_id" || column == "user" && l.Text != ""
}

// rarestFirst swaps the label of the fewest records to the front; it counts no
// further than matters.
func (c *condition) rarestFirst(labels []int64) {
	const enough = 1000
	least := int64(enough)
	for i := 0; len(labels) > 1 && i < len(labels); i++ {
		n := c.integer("SELECT count(*) FROM (SELECT 1 FROM labels WHERE label = ? LIMIT ?)", labels[i], int64(enough))
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

// filter writes a filter that compiles.
func (c *condition) filter(f storage.Filter) {
	switch f := f.(type) {
	case *storage.Branch:
		operator := " AND "
		if f.Or {
			operator = " OR "
		}
		c.join(operandsOf(f), operator)
	case *storage.Leaf:
		c.leaf(f)
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

// filterColumns are the columns of requests that fields compare, by group and
// field.
var filterColumns = map[storage.Group]map[string]string{
	storage.RequestResponse: {
		"country_code":              "country",
		"provider":                  "provider",
		"model":                     "model",
		"user_id":                   "user",
		"organization_id":           "org",
		"node_id":                   "node",
		"job_id":                    "job",
		"request_id":                "request_id",
		"target_url":                "target_url",
		"cache_reference_id":        "cache_reference",
		"prompt_id":                 "prompt",
		"prompt_version":            "prompt_version",
		"request_referrer":          "referrer",
		"latency":                   "latency",
		"cost":                      "cost",
		"time_to_first_token":       "ttft",
		"status":                    "status",
		"prompt_tokens":             "input",
		"completion_tokens":         "output",
		"prompt_cache_read_tokens":  "cache_read",
		"prompt_cache_write_tokens": "cache_write",
		"request_created_at":        "n",
		"response_created_at":       "responded_at",
		"threat":                    "threat",
		"cache_enabled":             "cache_enabled",
		"is_passthrough_billing":    "passthrough",
		"end_state":                 "end_state",
		"finish_reason":             "finish",
		"error_type":                "error_type",
		"request_model":             "request_model",
		"request_path":              "path",
		"session_id":                "session",
		"stream":                    "stream",
	},
	storage.RequestGroup: {
		"user_id":       "user",
		"auth_hash":     "auth_hash",
		"org_id":        "org",
		"id":            "request_id",
		"node_id":       "node",
		"model":         "request_model",
		"modelOverride": "model_override",
		"path":          "path",
		"country_code":  "country",
		"prompt_id":     "prompt",
		"created_at":    "n",
	},
	storage.ResponseGroup: {
		"body_model":  "response_model",
		"model":       "response_model",
		"body_tokens": "output",
		"status":      "status",
	},
}

// columnOf is the column that a field compares, "" if it compares another table.
func columnOf(f *storage.Field) string { return filterColumns[f.Group][f.Name] }

// lookup is the id of a name, 0 when no record has it.
func (c *condition) lookup(kind, name string) int64 {
	return c.integer("SELECT id FROM names WHERE kind = ? AND name = ?", kind, name)
}

func (c *condition) integer(query string, args ...driver.Value) int64 {
	if c.err != nil {
		return 0
	}
	var n int64
	n, c.err = c.r.c.integer(c.ctx, query, args...)
	return n
}

// matching are the ids of all names of a kind that match, as a JSON array.
func (c *condition) matching(kind string, matches func(string) bool) string {
	if c.err != nil {
		return ""
	}
	ids := []int64{}
	c.err = c.r.c.query(c.ctx, "SELECT id, name FROM names WHERE kind = ?", []driver.Value{kind}, func(row []driver.Value) error {
		if matches(row[1].(string)) {
			ids = append(ids, row[0].(int64))
		}
		return nil
	})
	return compactJSON(ids)
}
