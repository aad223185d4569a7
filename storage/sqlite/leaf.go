package sqlite

import (
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// leaf writes one comparison. What a record lacks is NULL, of which no
// comparison is true, so the negative operators ask for it.
func (c *condition) leaf(l *storage.Leaf) {
	switch {
	case !l.Field.Applies():
		c.write(never)
	case l.Field.Content != 0:
		c.content = true
		c.write(always)
	case labelKind(l) != "":
		c.label(l)
	case l.Field.Kind == storage.Number:
		c.number(l)
	case l.Field.Kind == storage.Time:
		c.time(l)
	case l.Field.Kind == storage.Boolean:
		c.boolean(l)
	case l.Field.Kind == storage.PropertyKey:
		c.write("r.n IN (SELECT n FROM labels WHERE label IN (SELECT id FROM names WHERE kind = ?))", propertyKind(l.Text))
	default:
		c.text(l)
	}
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

func (c *condition) number(l *storage.Leaf) {
	switch {
	case l.Op == storage.IsNull && l.Field.Map:
		c.not(l.Bool)
		c.score(l.Key, "?", true)
		return
	case l.Op == storage.IsNull && l.Field.Group == storage.FeedbackGroup:
		c.not(l.Bool)
		c.feedback("?", true)
		return
	case l.Field.Map:
		c.score(l.Key, "value"+comparisons[l.Op], l.Number)
		return
	case l.Field.Group == storage.FeedbackGroup && l.Op == storage.NotEquals:
		c.not(true)
		c.feedback("d.feedback_id + 0.0 = ?", l.Number)
		return
	case l.Field.Group == storage.FeedbackGroup:
		c.feedback("d.feedback_id + 0.0"+comparisons[l.Op], l.Number)
		return
	}
	// As in the evaluator, numbers compare as doubles.
	value := "r." + columnOf(l.Field) + " + 0.0"
	switch l.Field.Name {
	case "cost":
		value = "r.cost / 1e9"
	case "total_tokens":
		value = totalTokens + " + 0.0"
	}
	if l.Op == storage.IsNull {
		c.is("("+value+")", !l.Bool)
		return
	}
	if l.Op == storage.NotEquals {
		c.write("("+value+") IS NOT ?", l.Number)
		return
	}
	c.write(value+comparisons[l.Op], l.Number)
}

// not negates what is written next.
func (c *condition) not(yes bool) {
	if yes {
		c.write("NOT ")
	}
}

// totalTokens is unknown when either of the two is.
const totalTokens = "(r.input + r.output)"

func (c *condition) time(l *storage.Leaf) {
	switch column := columnOf(l.Field); {
	case l.Field.Group == storage.FeedbackGroup:
		c.feedback("d.feedback_created_at"+comparisons[l.Op], int64(l.Time))
		return
	case column != "n":
		c.write("r."+column+comparisons[l.Op], int64(l.Time))
		return
	}
	this, next := firstN(l.Time), firstN(l.Time+1)
	switch l.Op {
	case storage.GTE:
		c.write("r.n >= ?", this)
	case storage.GT:
		c.write("r.n >= ?", next)
	case storage.LT:
		c.write("r.n < ?", this)
	case storage.LTE:
		c.write("r.n < ?", next)
	default:
		c.write("(r.n >= ? AND r.n < ?)", this, next)
	}
}

func (c *condition) boolean(l *storage.Leaf) {
	switch column := columnOf(l.Field); {
	case l.Field.Name == "cached":
		c.is("r.cache_reference", l.Bool)
	case column != "":
		c.write("r."+column+" = ?", l.Bool)
	default:
		c.score(storage.FeedbackScore, "value = ?", l.Bool)
	}
}

// score writes that the record has a score, and compares its value.
func (c *condition) score(name, comparison string, value any) {
	c.write("r.n IN (SELECT n FROM scores WHERE name = ? AND "+comparison+")", c.lookup(scoreKind, name), value)
}

// feedback writes that the record has feedback, and compares a detail of it.
func (c *condition) feedback(comparison string, value any) {
	c.write("r.n IN (SELECT s.n FROM scores s JOIN details d ON d.n = s.n WHERE s.name = ? AND "+comparison+")",
		c.lookup(scoreKind, storage.FeedbackScore), value)
}

func (c *condition) text(l *storage.Leaf) {
	switch column := columnOf(l.Field); {
	case column == "end_state":
		matches := storage.TextMatcher(l.Op, l.Text, nil)
		c.write("r.end_state IN (-1")
		for _, state := range storage.EndStates {
			if matches(state.String()) {
				c.write(", ?", int64(state))
			}
		}
		c.write(")")
	case column == "request_id" || column == "cache_reference":
		c.id("r."+column, l)
	case column != "":
		c.named("r."+column, columnKinds[column], l)
	case l.Field.Name == "scores_column" && !storage.TextMatcher(l.Op, l.Text, nil)("{}"):
		c.approximate("r.n IN (SELECT n FROM scores)")
	default:
		c.approximate(always)
	}
}

// id compares a UUID.
func (c *condition) id(column string, l *storage.Leaf) {
	if l.Op != storage.Equals {
		c.approximate(always)
		return
	}
	id, err := uuid.Parse(l.Text)
	switch {
	case l.Text == "":
		c.is(column, false)
	case err != nil || id.String() != l.Text: // Parse takes other spellings too
		c.write(never)
	default:
		c.write(column+" = ?", id[:])
	}
}

// columnKinds has the kind of names in each column that refers to names.
var columnKinds = func() map[string]string {
	kinds := make(map[string]string)
	for _, c := range requestColumns {
		if c.kind != "" {
			kinds[c.name] = c.kind
		}
	}
	return kinds
}()

// named compares a text that stands in names; NULL is the empty text.
func (c *condition) named(column, kind string, l *storage.Leaf) {
	switch {
	case l.Text == "" && l.Op == storage.Equals:
		c.is(column, false)
	case l.Text == "" && l.Op == storage.NotEquals:
		c.is(column, true)
	case l.Op == storage.Equals:
		c.write(column+" = ?", c.lookup(kind, l.Text))
	case l.Op == storage.NotEquals:
		c.write(column+" IS NOT ?", c.lookup(kind, l.Text))
	default:
		matches := storage.TextMatcher(l.Op, l.Text, storage.NewCancelCheck(c.ctx.Err))
		c.write("(")
		if matches("") {
			c.write(column + " IS NULL OR ")
		}
		// The plus keeps from the index, which has no order for many texts.
		c.write("+"+column+" IN (SELECT value FROM json_each(?)))", c.matching(kind, matches))
	}
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
func (c *condition) label(l *storage.Leaf) {
	kind := labelKind(l)
	c.not(l.Op.Negative())
	if l.Op == storage.Equals || l.Op == storage.NotEquals {
		c.write("r.n IN (SELECT n FROM labels WHERE label = ?)", c.lookup(kind, l.Text))
		return
	}
	matches := storage.TextMatcher(l.Op, l.Text, storage.NewCancelCheck(c.ctx.Err))
	c.write("r.n IN (SELECT n FROM labels WHERE label IN (SELECT value FROM json_each(?)))",
		c.matching(kind, func(s string) bool { return matches(s) != l.Op.Negative() }))
}
