package sqlite

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// condition writes the WHERE clause of a query: requests are r. Values are only
// ever bound.
type condition struct {
	ctx  context.Context
	r    reader
	sql  strings.Builder
	args []driver.Value
	// inexact is true when the clause lets records pass that the filter may
	// not: storage.Match decides then.
	inexact bool
	// byLabel is true when the clause expects the rows of one label, as l,
	// joined with their requests.
	byLabel bool
}

func (c *condition) write(sql string, args ...driver.Value) error {
	c.sql.WriteString(sql)
	c.args = append(c.args, args...)
	return nil
}

// maybe writes a clause that is true of all records for which the leaf is.
func (c *condition) maybe(sql string, args ...driver.Value) error {
	c.inexact = true
	return c.write(sql, args...)
}

const (
	always = "1"
	never  = "0"
)

// conjuncts splits a filter at its topmost "and"s.
func conjuncts(f storage.Filter) []storage.Filter {
	if b, ok := f.(*storage.Branch); ok && !b.Or {
		return append(conjuncts(b.Left), conjuncts(b.Right)...)
	}
	return []storage.Filter{f}
}

// top writes the whole filter. Among its conjuncts, the one which says best
// where the records stand leads: an id or a user, which have an index on
// requests, else a property or asset, which has the table labels.
func (c *condition) top(f storage.Filter) error {
	var labels []int64
	indexed := false
	for _, part := range conjuncts(f) {
		indexed = indexed || hasIndex(part)
		l, ok := part.(*storage.Leaf)
		if !ok || l.Op != storage.Equals || labelKind(l) == "" {
			c.write(" AND ")
			if err := c.filter(part); err != nil {
				return err
			}
			continue
		}
		label, err := c.lookup(labelKind(l), l.Text)
		if err != nil {
			return err
		}
		labels = append(labels, label)
	}
	if len(labels) > 0 && !indexed {
		if err := c.rarestFirst(labels); err != nil {
			return err
		}
		c.byLabel = true
		c.write(" AND l.label = ?", labels[0])
		labels = labels[1:]
	}
	for _, label := range labels {
		c.write(" AND EXISTS (SELECT 1 FROM labels WHERE label = ? AND n = r.n)", label)
	}
	return nil
}

// rarestFirst swaps the label of the fewest records to the front; it counts no
// further than matters.
func (c *condition) rarestFirst(labels []int64) error {
	const enough = 1000
	least := int64(enough)
	for i := 0; len(labels) > 1 && i < len(labels); i++ {
		n, err := c.r.c.integer(c.ctx, "SELECT count(*) FROM (SELECT 1 FROM labels WHERE label = ? LIMIT ?)", labels[i], int64(enough))
		if err != nil {
			return err
		}
		if n < least {
			least = n
			labels[0], labels[i] = labels[i], labels[0]
		}
	}
	return nil
}

// hasIndex tells whether an index on requests finds what makes f true.
func hasIndex(f storage.Filter) bool {
	l, ok := f.(*storage.Leaf)
	if !ok || l.Op != storage.Equals {
		return false
	}
	switch columnOf(l.Field) {
	case "request_id":
		return true
	case "user":
		return l.Text != ""
	}
	return false
}

func (c *condition) filter(f storage.Filter) error {
	switch f := f.(type) {
	case *storage.Branch:
		c.write("(")
		if err := c.filter(f.Left); err != nil {
			return err
		}
		if f.Or {
			c.write(" OR ")
		} else {
			c.write(" AND ")
		}
		if err := c.filter(f.Right); err != nil {
			return err
		}
		return c.write(")")
	case *storage.Leaf:
		return c.leaf(f)
	}
	return c.write(always)
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

func columnOf(f *storage.Field) string { return filterColumns[f.Group][f.Name] }

// comparisons are the operators in SQL. Both sides are known: what a record
// lacks is NULL, of which no comparison is true.
var comparisons = map[storage.Operator]string{
	storage.Equals:    " = ?",
	storage.NotEquals: " <> ?",
	storage.GTE:       " >= ?",
	storage.LTE:       " <= ?",
	storage.LT:        " < ?",
	storage.GT:        " > ?",
}

func (c *condition) leaf(l *storage.Leaf) error {
	switch {
	case !l.Field.Applies():
		return c.write(never)
	case l.Field.Content:
		return c.maybe(always)
	case labelKind(l) != "":
		return c.label(l)
	}
	switch l.Field.Kind {
	case storage.Number:
		return c.number(l)
	case storage.Time:
		return c.time(l)
	case storage.Boolean:
		return c.boolean(l)
	case storage.PropertyKey:
		return c.write("r.n IN (SELECT n FROM labels WHERE label IN (SELECT id FROM names WHERE kind = ?))", propertyKind(l.Text))
	}
	return c.text(l)
}

func (c *condition) number(l *storage.Leaf) error {
	switch {
	case l.Field.Map:
		return c.score(l.Key, "value"+comparisons[l.Op], l.Number)
	case l.Field.Group == storage.FeedbackGroup && l.Op == storage.NotEquals:
		c.write("NOT ")
		return c.feedback("d.feedback_id + 0.0"+comparisons[storage.Equals], l.Number)
	case l.Field.Group == storage.FeedbackGroup:
		return c.feedback("d.feedback_id + 0.0"+comparisons[l.Op], l.Number)
	}
	// As in the evaluator, numbers compare as doubles.
	value := "r." + columnOf(l.Field) + " + 0.0"
	switch l.Field.Name {
	case "cost":
		value = "r.cost / 1e9"
	case "total_tokens":
		value = totalTokens + " + 0.0"
	}
	if l.Op == storage.NotEquals {
		return c.write("("+value+") IS NOT ?", l.Number)
	}
	return c.write(value+comparisons[l.Op], l.Number)
}

// totalTokens is the sum of what is known of the two.
const totalTokens = "coalesce(r.input + r.output, r.input, r.output)"

func (c *condition) time(l *storage.Leaf) error {
	switch {
	case l.Field.Group == storage.FeedbackGroup:
		return c.feedback("d.feedback_created_at"+comparisons[l.Op], int64(l.Time))
	case columnOf(l.Field) != "n":
		return c.write("r."+columnOf(l.Field)+comparisons[l.Op], int64(l.Time))
	}
	this, next := firstN(l.Time), firstN(l.Time+1)
	switch l.Op {
	case storage.GTE:
		return c.write("r.n >= ?", this)
	case storage.GT:
		return c.write("r.n >= ?", next)
	case storage.LT:
		return c.write("r.n < ?", this)
	case storage.LTE:
		return c.write("r.n < ?", next)
	}
	return c.write("(r.n >= ? AND r.n < ?)", this, next)
}

func (c *condition) boolean(l *storage.Leaf) error {
	switch {
	case l.Field.Name == "cached":
		return c.is("r.cache_reference", l.Bool)
	case columnOf(l.Field) == "":
		return c.score(storage.FeedbackScore, "value = ?", l.Bool)
	}
	return c.write("r."+columnOf(l.Field)+" = ?", l.Bool)
}

// is writes that the record has something in a column, or nothing.
func (c *condition) is(column string, there bool) error {
	if there {
		return c.write(column + " IS NOT NULL")
	}
	return c.write(column + " IS NULL")
}

// score writes that the record has a score, and compares its value.
func (c *condition) score(name, comparison string, value driver.Value) error {
	id, err := c.lookup(scoreKind, name)
	if err != nil {
		return err
	}
	return c.write("r.n IN (SELECT n FROM scores WHERE name = ? AND "+comparison+")", id, value)
}

// feedback writes that the record has feedback, and compares a detail of it.
func (c *condition) feedback(comparison string, value driver.Value) error {
	id, err := c.lookup(scoreKind, storage.FeedbackScore)
	if err != nil {
		return err
	}
	return c.write("r.n IN (SELECT s.n FROM scores s JOIN details d ON d.n = s.n WHERE s.name = ? AND "+comparison+")", id, value)
}

func (c *condition) text(l *storage.Leaf) error {
	column := columnOf(l.Field)
	switch {
	case column == "request_id" || column == "cache_reference":
		return c.id("r."+column, l)
	case column != "":
		return c.named("r."+column, kinds[column], l)
	case l.Field.Name == "scores_column" && !storage.TextMatcher(l.Op, l.Text)("{}"):
		return c.maybe("r.n IN (SELECT n FROM scores)")
	}
	return c.maybe(always)
}

// id compares a UUID, which NULL stands for the lack of.
func (c *condition) id(column string, l *storage.Leaf) error {
	id, err := uuid.Parse(l.Text)
	canonical := err == nil && id.String() == l.Text
	switch {
	case l.Op == storage.Equals && canonical:
		return c.write(column+" = ?", id[:])
	case l.Op == storage.Equals && l.Text == "":
		return c.is(column, false)
	case l.Op == storage.Equals:
		return c.write(never)
	}
	return c.maybe(always)
}

// kinds has the kind of names in each column that refers to names.
var kinds = func() map[string]string {
	m := make(map[string]string)
	for _, c := range requestColumns {
		if c.kind != "" {
			m[c.name] = c.kind
		}
	}
	return m
}()

// named compares a text that stands in names.
func (c *condition) named(column, kind string, l *storage.Leaf) error {
	switch {
	case l.Op == storage.Equals && l.Text == "":
		return c.is(column, false)
	case l.Op == storage.NotEquals && l.Text == "":
		return c.is(column, true)
	case l.Op == storage.Equals, l.Op == storage.NotEquals:
		id, err := c.lookup(kind, l.Text)
		if err != nil {
			return err
		}
		if l.Op == storage.Equals {
			return c.write(column+" = ?", id)
		}
		return c.write(column+" IS NOT ?", id)
	}
	matches := storage.TextMatcher(l.Op, l.Text)
	ids, err := c.matching(kind, matches)
	if err != nil {
		return err
	}
	c.write("(")
	if matches("") {
		c.write(column + " IS NULL OR ")
	}
	// The plus keeps from the index, which has no order for many texts.
	return c.write("+"+column+" IN (SELECT value FROM json_each(?)))", compactJSON(ids))
}

// labelKind is the kind of names whose labels a leaf compares, "" if none.
func labelKind(l *storage.Leaf) string {
	switch f := l.Field; {
	case f.Kind != storage.Text || f.Content:
		return ""
	case f.Map:
		return propertyKind(l.Key)
	case f.Name == "assets":
		return assetKind
	}
	return ""
}

// label compares the texts of a property or of assets. A negative operator is
// true when none of them matches.
func (c *condition) label(l *storage.Leaf) error {
	kind := labelKind(l)
	if l.Op.Negative() {
		c.write("NOT ")
	}
	if l.Op == storage.Equals || l.Op == storage.NotEquals {
		id, err := c.lookup(kind, l.Text)
		if err != nil {
			return err
		}
		return c.write("r.n IN (SELECT n FROM labels WHERE label = ?)", id)
	}
	matches := storage.TextMatcher(l.Op, l.Text)
	ids, err := c.matching(kind, func(s string) bool { return matches(s) != l.Op.Negative() })
	if err != nil {
		return err
	}
	return c.write("r.n IN (SELECT n FROM labels WHERE label IN (SELECT value FROM json_each(?)))", compactJSON(ids))
}

// lookup is the id of a name, 0 when no record has it.
func (c *condition) lookup(kind, name string) (int64, error) {
	return c.r.c.integer(c.ctx, "SELECT id FROM names WHERE kind = ? AND name = ?", kind, name)
}

// matching are the ids of all names of a kind that match.
func (c *condition) matching(kind string, matches func(string) bool) ([]int64, error) {
	ids := []int64{}
	err := c.r.c.query(c.ctx, "SELECT id, name FROM names WHERE kind = ?", []driver.Value{kind}, func(row []driver.Value) error {
		if matches(row[1].(string)) {
			ids = append(ids, row[0].(int64))
		}
		return nil
	})
	return ids, err
}
