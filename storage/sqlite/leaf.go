package sqlite

import (
	"database/sql/driver"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// clause is SQL that is true of all records of which a leaf is, with its arguments.
type clause struct {
	sql     string
	args    []driver.Value
	support storage.Support
}

// unsupported is the clause of a leaf that SQL does not decide.
var unsupported clause

func exactly(sql string, args ...driver.Value) clause { return clause{sql, args, storage.Exact} }

// notIf negates a clause if so.
func (c clause) notIf(yes bool) clause {
	if yes {
		c.sql = "NOT (" + c.sql + ")"
	}
	return c
}

const (
	always = "1"
	never  = "0"
)

// null is true of records with nothing in a column.
func null(column string) clause { return exactly(column + " IS NULL") }

// notNull is true of records with something in a column.
func notNull(column string) clause { return exactly(column + " IS NOT NULL") }

// leaf compiles one comparison. What a record lacks is NULL, of which no comparison
// is true, so the negative operators ask for it.
func (c *condition) leaf(l *storage.Leaf) clause {
	switch {
	case !l.Field.Applies():
		return exactly(never)
	case l.Field.Content != 0:
		return unsupported
	case labelKind(l) != "":
		return c.label(l)
	case l.Field.Kind == storage.Number:
		return c.number(l)
	case l.Field.Kind == storage.Time:
		return c.time(l)
	case l.Field.Kind == storage.Boolean:
		return c.boolean(l)
	case l.Field.Kind == storage.PropertyKey:
		return c.anyLabel(propertyKind(l.Text), func(string) bool { return true })
	}
	return c.text(l)
}

// comparisons are the operators of numbers and timestamps in SQL.
var comparisons = map[storage.Operator]string{
	storage.Equals:    " = ?",
	storage.NotEquals: " <> ?",
	storage.GTE:       " >= ?",
	storage.LTE:       " <= ?",
	storage.LT:        " < ?",
	storage.GT:        " > ?",
}

func (c *condition) number(l *storage.Leaf) clause {
	switch {
	case l.Field.Map && l.Op == storage.IsNull:
		return c.score(l.Key, always).notIf(l.Bool)
	case l.Field.Map:
		return c.score(l.Key, "value"+comparisons[l.Op], l.Number)
	case l.Field.Group == storage.FeedbackGroup && l.Op == storage.IsNull:
		return c.feedback(always).notIf(l.Bool)
	case l.Field.Group == storage.FeedbackGroup && l.Op == storage.NotEquals:
		return c.feedback("d.feedback_id + 0.0 = ?", l.Number).notIf(true)
	case l.Field.Group == storage.FeedbackGroup:
		return c.feedback("d.feedback_id + 0.0"+comparisons[l.Op], l.Number)
	}
	// As in the evaluator, numbers compare as doubles.
	value := "(r." + columnOf(l.Field) + " + 0.0)"
	switch l.Field.Name {
	case "cost", "cache_savings", "cache_loss":
		value = "(r." + columnOf(l.Field) + " / 1e9)"
	case "total_tokens":
		value = "(" + totalTokens + " + 0.0)"
	}
	switch {
	case l.Op == storage.IsNull && l.Bool:
		return null(value)
	case l.Op == storage.IsNull:
		return notNull(value)
	case l.Op == storage.NotEquals:
		return exactly(value+" IS NOT ?", l.Number)
	}
	return exactly(value+comparisons[l.Op], l.Number)
}

// totalTokens is unknown when either of the two is.
const totalTokens = "(r.input + r.output)"

func (c *condition) time(l *storage.Leaf) clause {
	switch column := columnOf(l.Field); {
	case l.Field.Group == storage.FeedbackGroup:
		return c.feedback("d.feedback_created_at"+comparisons[l.Op], int64(l.Time))
	case column != "created_at":
		return exactly("r."+column+comparisons[l.Op], int64(l.Time))
	}
	this, next := columnar.FirstKey(l.Time), columnar.FirstKey(l.Time+1)
	switch l.Op {
	case storage.GTE:
		return exactly("r.n >= ?", this)
	case storage.GT:
		return exactly("r.n >= ?", next)
	case storage.LT:
		return exactly("r.n < ?", this)
	case storage.LTE:
		return exactly("r.n < ?", next)
	}
	return exactly("(r.n >= ? AND r.n < ?)", this, next)
}

func (c *condition) boolean(l *storage.Leaf) clause {
	switch column := columnOf(l.Field); {
	case l.Field.Name == "cached":
		return notNull("r.cache_reference").notIf(!l.Bool)
	case column != "":
		return exactly("r."+column+" = ?", l.Bool)
	}
	return c.score(storage.FeedbackScore, "value = ?", l.Bool)
}

// score is true of records with a score whose value compares so.
func (c *condition) score(name, comparison string, value ...driver.Value) clause {
	args := append([]driver.Value{c.lookup(scoreKind, name)}, value...)
	return exactly("r.n IN (SELECT n FROM scores WHERE name = ? AND "+comparison+")", args...)
}

// feedback is true of records with feedback of which a detail compares so.
func (c *condition) feedback(comparison string, value ...driver.Value) clause {
	args := append([]driver.Value{c.lookup(scoreKind, storage.FeedbackScore)}, value...)
	return exactly("r.n IN (SELECT s.n FROM scores s JOIN details d ON d.n = s.n WHERE s.name = ? AND "+comparison+")", args...)
}

func (c *condition) text(l *storage.Leaf) clause {
	switch column := columnOf(l.Field); {
	case column == "end_state":
		matches := storage.TextMatcher(l.Op, l.Text, nil)
		states := exactly("r.end_state IN (-1")
		for _, state := range storage.EndStates {
			if matches(state.String()) {
				states.sql, states.args = states.sql+", ?", append(states.args, int64(state))
			}
		}
		states.sql += ")"
		return states
	case l.Field.Column != nil && l.Field.Column.Type() == storage.IDColumn && l.Field.Column.Names == "":
		return uuidEquals("r."+column, l)
	case column != "":
		return c.named("r."+column, l.Field.Column.Names, l)
	case l.Field.Name == "scores_column" && !storage.TextMatcher(l.Op, l.Text, nil)("{}"):
		return clause{sql: "r.n IN (SELECT n FROM scores)", support: storage.Superset}
	}
	return unsupported
}

// uuidEquals compares a UUID.
func uuidEquals(column string, l *storage.Leaf) clause {
	if l.Op != storage.Equals {
		return unsupported
	}
	id, err := uuid.Parse(l.Text)
	switch {
	case l.Text == "":
		return null(column)
	case err != nil || id.String() != l.Text: // Parse takes other spellings too
		return exactly(never)
	}
	return exactly(column+" = ?", id[:])
}

// named compares a text that stands in names; NULL is the empty text.
func (c *condition) named(column, kind string, l *storage.Leaf) clause {
	switch {
	case l.Text == "" && l.Op == storage.Equals:
		return null(column)
	case l.Text == "" && l.Op == storage.NotEquals:
		return notNull(column)
	case l.Op == storage.Equals:
		return exactly(column+" = ?", c.lookup(kind, l.Text))
	case l.Op == storage.NotEquals:
		return exactly(column+" IS NOT ?", c.lookup(kind, l.Text))
	}
	matches := storage.TextMatcher(l.Op, l.Text, storage.NewCancelCheck(c.ctx.Err))
	// The plus keeps from the index, which has no order for many texts.
	list := c.matching("+"+column, "+"+column, kind, matches)
	if list.support == storage.Exact && matches("") {
		list.sql = "(" + column + " IS NULL OR " + list.sql + ")"
	}
	return list
}

// labelKind is the kind of names whose labels a leaf compares, "" if none.
func labelKind(l *storage.Leaf) string {
	switch f := l.Field; {
	case f.Kind != storage.Text || f.Content != 0:
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
func (c *condition) label(l *storage.Leaf) clause {
	kind := labelKind(l)
	if l.Op == storage.Equals || l.Op == storage.NotEquals {
		return exactly("r.n IN (SELECT n FROM labels WHERE "+inAnyBucket+" AND label = ?)", c.lookup(kind, l.Text)).notIf(l.Op.Negative())
	}
	matches := storage.TextMatcher(l.Op, l.Text, storage.NewCancelCheck(c.ctx.Err))
	return c.anyLabel(kind, func(s string) bool { return matches(s) != l.Op.Negative() }).notIf(l.Op.Negative())
}

// anyLabel is true of records with a label that matches. A few are looked for in each
// bucket, while for many it is faster to go through all labels.
func (c *condition) anyLabel(kind string, matches func(string) bool) clause {
	list := c.matching(inAnyBucket+" AND label", "+label", kind, matches)
	if list.support == storage.Exact {
		list.sql = "r.n IN (SELECT n FROM labels WHERE " + list.sql + ")"
	}
	return list
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

// maxNames bounds the ids of a list, and fewNames those of one that is short. Tests make
// them smaller.
var maxNames, fewNames = 50_000, 20

// matching is true of records whose column refers to a name of the kind that
// matches, as a list of those that do, or of those that do not, whichever is short
// enough: NULL is neither. The column may have two spellings, for a few names and for many.
func (c *condition) matching(few, many, kind string, matches func(string) bool) clause {
	if c.err != nil {
		return unsupported
	}
	lists := map[bool][]int64{true: {}, false: {}}
	c.err = c.r.c.query(c.ctx, "SELECT id, name FROM names WHERE kind = ?", []driver.Value{kind}, func(row []driver.Value) error {
		yes := matches(row[1].(string))
		if lists[yes] = append(lists[yes], row[0].(int64)); len(lists[yes]) <= maxNames {
			return nil
		}
		if len(lists[!yes]) > maxNames {
			return errStop
		}
		lists[yes] = lists[yes][:maxNames+1]
		return nil
	})
	yes, no := lists[true], lists[false]
	switch {
	case len(yes) <= min(fewNames, maxNames):
		return exactly(few+" IN (SELECT value FROM json_each(?))", compactJSON(yes))
	case len(yes) <= maxNames:
		return exactly(many+" IN (SELECT value FROM json_each(?))", compactJSON(yes))
	case len(no) <= maxNames:
		return exactly(many+" IN (SELECT id FROM names WHERE kind = ? AND id NOT IN (SELECT value FROM json_each(?)))", kind, compactJSON(no))
	}
	return unsupported
}
