package clickhouse

import (
	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// clause is a condition that is true of all records of which a leaf is. It is never
// NULL, so that it can be negated.
type clause struct {
	sql     string
	support storage.Support
}

// unsupported is the clause of a leaf that the server does not decide.
var unsupported clause

func exactly(sql string) clause { return clause{"(" + sql + ")", storage.Exact} }

// notIf negates a clause if so.
func (c clause) notIf(yes bool) clause {
	if yes {
		c.sql = "(NOT " + c.sql + ")"
	}
	return c
}

// leaf compiles one comparison.
func (p *params) leaf(l *storage.Leaf) clause {
	switch f := l.Field; {
	case !f.Applies():
		return exactly("0")
	case f.Content != 0:
		return unsupported
	case f.Map && f.Kind == storage.Number:
		return p.score(l)
	case f.Map && l.Key == "", f.Kind == storage.PropertyKey && l.Text == "":
		return unsupported // a map of LowCardinality keys does not find the empty one
	case f.Map:
		return p.property(l)
	case f.Kind == storage.PropertyKey:
		name := p.text(l.Text)
		return exactly("mapContains(properties, " + name + ") OR request_id IN (" + lateProperties + " AND name = " + name + ")")
	case f.Group == storage.FeedbackGroup || f.Name == storage.FeedbackScore:
		return p.feedback(l)
	case f.Kind == storage.Number:
		return p.number(l)
	case f.Kind == storage.Time && l.Field.Column.Name == "created_at":
		return exactly("created_at" + comparisons[l.Op] + p.time(l.Time))
	case f.Kind == storage.Time:
		column := l.Field.Column.Name
		return exactly(column + " != " + p.time(0) + " AND " + column + comparisons[l.Op] + p.time(l.Time))
	case f.Kind == storage.Boolean:
		return exactly(booleanOf(f)).notIf(!l.Bool)
	case f.Name == "assets":
		return p.assets(l)
	case f.Name == "scores_column" && !storage.TextMatcher(l.Op, l.Text, nil)("{}"):
		return clause{"(request_id IN (" + scoredIDs + "))", storage.Superset}
	case f.Column == nil:
		return unsupported
	}
	if c := l.Field.Column; c.Type() == storage.IDColumn && l.Op == storage.Equals {
		id, err := uuid.Parse(l.Text)
		if l.Text != "" && (err != nil || id.String() != l.Text) { // Parse takes other spellings too
			return exactly("0")
		}
		return exactly(c.Name + " = " + p.bind(id.String(), "UUID"))
	}
	return p.textual(l, textOf(l.Field.Column))
}

// comparisons are the operators of numbers and times in SQL.
var comparisons = map[storage.Operator]string{
	storage.Equals:    " = ",
	storage.NotEquals: " != ",
	storage.GTE:       " >= ",
	storage.LTE:       " <= ",
	storage.LT:        " < ",
	storage.GT:        " > ",
}

// noID is the zero UUID.
const noID = "toUUID('00000000-0000-0000-0000-000000000000')"

// textOf is a column as the text that leaves compare.
func textOf(c *storage.Column) string {
	switch {
	case c.Type() == storage.IDColumn && c.Required:
		return "toString(" + c.Name + ")"
	case c.Type() == storage.IDColumn:
		return "if(" + c.Name + " = " + noID + ", '', toString(" + c.Name + "))"
	case c.Type() == storage.EndStateColumn:
		return "CAST(" + c.Name + ", 'String')"
	}
	return c.Name
}

func booleanOf(f *storage.Field) string {
	if f.Name == "cached" {
		return "cache_reference != " + noID
	}
	return f.Column.Name
}

// numberOf is a field as leaves compare it: as doubles, and in dollars.
func numberOf(f *storage.Field) string {
	switch f.Name {
	case "total_tokens":
		return "toFloat64(input + output)"
	case "cost", "cache_savings", "cache_loss":
		return "toFloat64(" + f.Column.Name + ") / 1e9"
	}
	return "toFloat64(" + f.Column.Name + ")"
}

func (p *params) number(l *storage.Leaf) clause {
	value := numberOf(l.Field)
	if l.Op == storage.IsNull {
		return exactly("isNull(" + value + ")").notIf(!l.Bool)
	}
	unknown := "0"
	if l.Op == storage.NotEquals {
		unknown = "1"
	}
	return exactly("ifNull(" + value + comparisons[l.Op] + p.bind(l.Number, "Float64") + ", " + unknown + ")")
}

// What was learned of records, behind which conditions follow.
const (
	scoredIDs      = "SELECT request_id FROM scores FINAL WHERE " + ofOrg
	lateProperties = "SELECT request_id FROM late_properties FINAL WHERE " + ofOrg
)

// score is true of records with a score of that name that compares so.
func (p *params) score(l *storage.Leaf) clause {
	scored := "request_id IN (" + scoredIDs + " AND name = " + p.text(l.Key)
	if l.Op == storage.IsNull {
		return exactly(scored + ")").notIf(l.Bool)
	}
	return exactly(scored + " AND value" + comparisons[l.Op] + p.bind(l.Number, "Float64") + ")")
}

// feedback is true of records with feedback of which a detail compares so.
func (p *params) feedback(l *storage.Leaf) clause {
	rated := "request_id IN (" + scoredIDs + " AND name = " + p.text(storage.FeedbackScore)
	switch {
	case l.Field.Kind == storage.Text: // the id of the record, if it has feedback
		return unsupported
	case l.Field.Kind == storage.Boolean:
		return exactly(rated + " AND value = " + p.bind(l.Bool, "Bool") + ")")
	case l.Field.Kind == storage.Time:
		return exactly(rated + " AND feedback_at" + comparisons[l.Op] + p.time(l.Time) + ")")
	case l.Op == storage.IsNull:
		return exactly(rated + ")").notIf(l.Bool)
	case l.Op == storage.NotEquals:
		return exactly(rated + " AND toFloat64(feedback_id) = " + p.bind(l.Number, "Float64") + ")").notIf(true)
	}
	return exactly(rated + " AND toFloat64(feedback_id)" + comparisons[l.Op] + p.bind(l.Number, "Float64") + ")")
}

// property compares the value of a property. One that was learned later holds.
func (p *params) property(l *storage.Leaf) clause {
	name := p.text(l.Key)
	own, late := p.matches(l, "properties["+name+"]"), p.matches(l, "value")
	if own.support == storage.Unsupported {
		return unsupported
	}
	learned := lateProperties + " AND name = " + name
	own.sql = "(mapContains(properties, " + name + ") AND " + own.sql + " AND request_id NOT IN (" + learned + ")" +
		" OR request_id IN (" + learned + " AND " + late.sql + "))"
	return own.notIf(l.Op.Negative() && own.support == storage.Exact)
}

// assets are true when any matches, and with a negative operator when none does.
func (p *params) assets(l *storage.Leaf) clause {
	any := p.matches(l, "asset")
	any.sql = "arrayExists(asset -> " + any.sql + ", assets)"
	switch {
	case any.support == storage.Unsupported:
		return unsupported
	case l.Op == storage.Equals:
		return exactly("has(assets, " + p.text(l.Text) + ")") // which has an index
	}
	return any.notIf(l.Op.Negative())
}

func (p *params) textual(l *storage.Leaf, text string) clause {
	c := p.matches(l, text)
	if c.support == storage.Unsupported {
		return c
	}
	return c.notIf(l.Op.Negative())
}

// matches is true of a text that matches the leaf's, by its operator or by the one that
// it negates. Only what is exact may be negated.
func (p *params) matches(l *storage.Leaf, text string) clause {
	if l.Op == storage.Equals || l.Op == storage.NotEquals {
		return exactly(text + " = " + p.text(l.Text))
	}
	pattern, support := patternOf(l.Op, l.Text)
	if support != storage.Exact && l.Op.Negative() {
		return unsupported
	}
	c := exactly("match(" + text + ", " + p.text(pattern) + ")")
	c.support = support
	if support == storage.Unsupported {
		return unsupported
	}
	return c
}
