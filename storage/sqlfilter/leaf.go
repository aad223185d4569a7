package sqlfilter

import (
	"fmt"
	"math"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// leaf compiles one comparison.
func leaf(d Dialect, l *storage.Leaf) Clause {
	switch f := l.Field; {
	case !f.Applies():
		return Exactly(Never)
	case f.Content != 0:
		return Unsupported
	case f.Kind == storage.Number:
		return number(d, l)
	case f.Map, f.Kind == storage.PropertyKey, f.Name == "assets":
		return d.Label(l)
	case f.Kind == storage.Time:
		return moment(d, l)
	case f.Name == "cached":
		return d.Lacks(cacheReference).NotIf(l.Bool)
	case f.Kind == storage.Boolean && f.Column == nil: // feedback
		return d.Scored(storage.FeedbackScore, "value", " = ", truth(l.Bool))
	case f.Kind == storage.Boolean:
		return Exactly(d.Value(f.Column)).NotIf(!l.Bool)
	case f.Name == "scores_column" && !storage.TextMatcher(l.Op, l.Text, nil)("{}"):
		c := d.AnyScore()
		c.Support = storage.Superset
		return c
	case f.Column == nil:
		return Unsupported
	case f.Column.Type() == storage.EndStateColumn:
		return endState(d, l)
	case f.Column.Type() == storage.IDColumn && f.Column.Names == "" && l.Op == storage.Equals:
		return id(d, l)
	}
	return d.Text(l)
}

// truth is a boolean as scores have it.
func truth(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Comparisons are the operators of numbers and times in SQL.
var Comparisons = map[storage.Operator]string{
	storage.Equals:    " = ",
	storage.NotEquals: " <> ",
	storage.GTE:       " >= ",
	storage.LTE:       " <= ",
	storage.LT:        " < ",
	storage.GT:        " > ",
}

// compare compares a value that may be NULL.
func compare(d Dialect, value string, op storage.Operator, to int64) Clause {
	bound := d.Bind(to)
	return Exactly(d.Known(value+Comparisons[op]+bound.SQL), bound.Args...)
}

func number(d Dialect, l *storage.Leaf) Clause {
	op, to, possible := l.Integer()
	switch f := l.Field; {
	case f.Map && l.Op == storage.IsNull:
		return d.Scored(l.Key, "", "", nil).NotIf(l.Bool)
	case f.Map:
		return d.Scored(l.Key, "value", Comparisons[l.Op], l.Number.Float())
	case f.Group == storage.FeedbackGroup && l.Op == storage.IsNull:
		return d.Scored(storage.FeedbackScore, "", "", nil).NotIf(l.Bool)
	case !possible && l.Op == storage.Equals:
		return Exactly(Never)
	case !possible:
		return Exactly(Always)
	case f.Group == storage.FeedbackGroup && op == storage.NotEquals:
		return d.Scored(storage.FeedbackScore, "feedback_id", " = ", to).NotIf(true)
	case f.Group == storage.FeedbackGroup:
		return d.Scored(storage.FeedbackScore, "feedback_id", Comparisons[op], to)
	}
	value := valueOf(d, l.Field)
	switch l.Op {
	case storage.IsNull:
		return Exactly(value + " IS NULL").NotIf(!l.Bool)
	case storage.NotEquals:
		c := compare(d, value, op, to)
		c.SQL = "(" + value + " IS NULL OR " + c.SQL + ")"
		return c
	}
	return compare(d, value, op, to)
}

// valueOf is the value of a field of numbers.
func valueOf(d Dialect, f *storage.Field) string {
	if f.Column == nil {
		return totalTokens(d)
	}
	return d.Value(f.Column)
}

// totalTokens is the sum of input and output: NULL if either is unknown, and no larger than a
// number of 64 bits.
func totalTokens(d Dialect) string {
	return fmt.Sprintf("(CASE WHEN %[1]s > %[3]d - %[2]s THEN %[3]d ELSE %[1]s + %[2]s END)", d.Value(column("input")), d.Value(column("output")), int64(math.MaxInt64))
}

func moment(d Dialect, l *storage.Leaf) Clause {
	switch c := l.Field.Column; {
	case l.Field.Group == storage.FeedbackGroup:
		return d.Scored(storage.FeedbackScore, "feedback_created_at", Comparisons[l.Op], int64(l.Time))
	case c.Name == "created_at":
		return d.CreatedAt(l.Op, l.Time)
	default:
		return compare(d, d.Value(c), l.Op, int64(l.Time))
	}
}

// endState compares with the states that have a matching name.
func endState(d Dialect, l *storage.Leaf) Clause {
	matches := storage.TextMatcher(l.Op, l.Text, nil)
	c := Exactly(d.Value(l.Field.Column) + " IN (-1")
	for _, state := range storage.EndStates {
		if matches(state.String()) {
			bound := d.Bind(int64(state))
			c.SQL, c.Args = c.SQL+", "+bound.SQL, append(c.Args, bound.Args...)
		}
	}
	c.SQL += ")"
	return c
}

// id looks for a UUID. "" looks for records without a UUID.
func id(d Dialect, l *storage.Leaf) Clause {
	id, err := uuid.Parse(l.Text)
	switch c := l.Field.Column; {
	case l.Text == "":
		return d.Lacks(c)
	case err != nil || id.String() != l.Text: // Parse takes other spellings too
		return Exactly(Never)
	default:
		bound := d.BindID(id)
		return Exactly(d.Value(c)+" = "+bound.SQL, bound.Args...)
	}
}
