package clickhouse

import (
	"database/sql/driver"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlfilter"
)

// The methods of sqlfilter.Dialect. Values are bound by name.
var _ sqlfilter.Dialect = (*params)(nil)

// exactly is a condition in parentheses.
func exactly(sql string) sqlfilter.Clause { return sqlfilter.Exactly("(" + sql + ")") }

// Bind implements sqlfilter.Dialect.
func (p *params) Bind(v driver.Value) sqlfilter.Clause {
	kind := "String"
	switch v.(type) {
	case int64:
		kind = "Int64"
	case float64:
		kind = "Float64"
	}
	return sqlfilter.Exactly(p.bind(v, kind))
}

// BindID implements sqlfilter.Dialect.
func (p *params) BindID(id uuid.UUID) sqlfilter.Clause {
	return sqlfilter.Exactly(p.bind(id.String(), "UUID"))
}

// Value implements sqlfilter.Dialect.
func (p *params) Value(c *storage.Column) string {
	switch c.Type() {
	case storage.TextColumn:
		return "nullIf(" + c.Name + ", '')"
	case storage.TimeColumn:
		millis := "toUnixTimestamp64Milli(" + c.Name + ")"
		if c.Required {
			return millis
		}
		return "nullIf(" + millis + ", 0)"
	case storage.EndStateColumn:
		return "toInt8(" + c.Name + ")"
	}
	return c.Name
}

// Lacks implements sqlfilter.Dialect.
func (p *params) Lacks(c *storage.Column) sqlfilter.Clause {
	if c.Type() == storage.IDColumn {
		return exactly(c.Name + " = " + noID)
	}
	return exactly(c.Name + " = ''")
}

// Known implements sqlfilter.Dialect.
func (*params) Known(comparison string) string { return "ifNull(" + comparison + ", 0)" }

// CreatedAt implements sqlfilter.Dialect.
func (p *params) CreatedAt(op storage.Operator, t storage.Timestamp) sqlfilter.Clause {
	return exactly("created_at" + sqlfilter.Comparisons[op] + p.time(t))
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

// Queries for what was learned of records. Conditions follow.
const (
	scoredIDs      = "SELECT request_id FROM scores FINAL WHERE " + ofOrg + " AND NOT isNaN(value)"
	lateProperties = "SELECT request_id FROM late_properties FINAL WHERE " + ofOrg
)

// Scored implements sqlfilter.Dialect.
func (p *params) Scored(name, column, operator string, v driver.Value) sqlfilter.Clause {
	scored := "request_id IN (" + scoredIDs + " AND name = " + p.text(name)
	if column == "feedback_created_at" {
		column = "toUnixTimestamp64Milli(feedback_at)"
	}
	if column != "" {
		scored += " AND " + column + operator + p.Bind(v).SQL
	}
	return exactly(scored + ")")
}

// AnyScore implements sqlfilter.Dialect.
func (*params) AnyScore() sqlfilter.Clause { return exactly("request_id IN (" + scoredIDs + ")") }

// Property implements sqlfilter.Dialect.
func (p *params) Property(_ int, name string) string {
	bound := p.text(name)
	return "if(mapContains(properties, " + bound + "), properties[" + bound + "], NULL)"
}

// Label implements sqlfilter.Dialect.
func (p *params) Label(l *storage.Leaf) sqlfilter.Clause {
	switch f := l.Field; {
	case f.Map && l.Key == "", f.Kind == storage.PropertyKey && l.Text == "":
		return sqlfilter.Unsupported // a map of LowCardinality keys does not find the empty key
	case f.Map:
		return p.property(l)
	case f.Kind == storage.PropertyKey:
		name := p.text(l.Text)
		return exactly("mapContains(properties, " + name + ") OR request_id IN (" + lateProperties + " AND name = " + name + ")")
	}
	return p.assets(l)
}

// property compares the value of a property. A value that was learned later takes precedence.
func (p *params) property(l *storage.Leaf) sqlfilter.Clause {
	name := p.text(l.Key)
	own, late := p.matches(l, "properties["+name+"]"), p.matches(l, "value")
	if own.Support == storage.Unsupported {
		return sqlfilter.Unsupported
	}
	learned := lateProperties + " AND name = " + name
	own.SQL = "(mapContains(properties, " + name + ") AND " + own.SQL + " AND request_id NOT IN (" + learned + ")" +
		" OR request_id IN (" + learned + " AND " + late.SQL + "))"
	return own.NotIf(l.Op.Negative() && own.Support == storage.Exact)
}

// assets are true when any asset matches; with a negative operator, when no asset does.
func (p *params) assets(l *storage.Leaf) sqlfilter.Clause {
	any := p.matches(l, "asset")
	any.SQL = "arrayExists(asset -> " + any.SQL + ", assets)"
	switch {
	case any.Support == storage.Unsupported:
		return sqlfilter.Unsupported
	case l.Op == storage.Equals:
		return exactly("has(assets, " + p.text(l.Text) + ")") // has uses an index
	}
	return any.NotIf(l.Op.Negative())
}

// Text implements sqlfilter.Dialect.
func (p *params) Text(l *storage.Leaf) sqlfilter.Clause {
	c := p.matches(l, textOf(l.Field.Column))
	return c.NotIf(l.Op.Negative() && c.Support != storage.Unsupported)
}

// matches is true of a text that matches the leaf's text by the leaf's operator. For a negative
// operator, it is true by the operator that is negated. Only what is exact may be negated.
func (p *params) matches(l *storage.Leaf, text string) sqlfilter.Clause {
	if l.Op == storage.Equals || l.Op == storage.NotEquals {
		return exactly(text + " = " + p.text(l.Text))
	}
	pattern, support := patternOf(l.Op, l.Text)
	if support == storage.Unsupported || support != storage.Exact && l.Op.Negative() {
		return sqlfilter.Unsupported
	}
	c := exactly("match(" + text + ", " + p.text(pattern) + ")")
	c.Support = support
	return c
}
