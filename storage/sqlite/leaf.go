package sqlite

import (
	"database/sql/driver"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
	"github.com/weirhq/weir/storage/sqlfilter"
)

// The methods of sqlfilter.Dialect. Texts stand in the table names, and what a record
// lacks is NULL.
var _ sqlfilter.Dialect = (*condition)(nil)

// Bind implements sqlfilter.Dialect.
func (*condition) Bind(v driver.Value) sqlfilter.Clause { return sqlfilter.Exactly("?", v) }

// BindID implements sqlfilter.Dialect.
func (*condition) BindID(id uuid.UUID) sqlfilter.Clause { return sqlfilter.Exactly("?", id[:]) }

// Value implements sqlfilter.Dialect.
func (*condition) Value(c *storage.Column) string {
	switch {
	case c.Name == "created_at":
		return "(r.n >> 20)"
	case c.Names != "":
		return "(SELECT name FROM names WHERE id = r." + c.Name + ")"
	}
	return "r." + c.Name
}

// Lacks implements sqlfilter.Dialect.
func (*condition) Lacks(c *storage.Column) sqlfilter.Clause {
	return sqlfilter.Exactly("r." + c.Name + " IS NULL")
}

// Known implements sqlfilter.Dialect.
func (*condition) Known(comparison string) string { return comparison }

// CreatedAt implements sqlfilter.Dialect.
func (*condition) CreatedAt(op storage.Operator, t storage.Timestamp) sqlfilter.Clause {
	this, next := columnar.FirstKey(t), columnar.FirstKey(t+1)
	switch op {
	case storage.GTE:
		return sqlfilter.Exactly("r.n >= ?", this)
	case storage.GT:
		return sqlfilter.Exactly("r.n >= ?", next)
	case storage.LT:
		return sqlfilter.Exactly("r.n < ?", this)
	case storage.LTE:
		return sqlfilter.Exactly("r.n < ?", next)
	}
	return sqlfilter.Exactly("(r.n >= ? AND r.n < ?)", this, next)
}

// listed is true of the requests in a list of keys. SQLite makes the list once, and looks each
// request up in it: the plus keeps SQLite from going through the list for each row of an index or
// another list, which would be a product of both. access takes the plus off where a list is to
// find the requests.
const (
	listed = "+r.n IN ("
	finds  = "r.n IN ("
)

// inList is true of the requests with the keys that a query of a table finds in the window. The
// query ends with a condition.
func (c *condition) inList(query string, args ...driver.Value) sqlfilter.Clause {
	return sqlfilter.Exactly(listed+query+" AND n BETWEEN ? AND ?)", append(args, c.from, c.to)...)
}

// inBucketList is inList for a table with buckets, which column has.
func (c *condition) inBucketList(table, column, and string, args ...driver.Value) sqlfilter.Clause {
	return c.inList("SELECT n FROM "+table+" WHERE "+column+inWindow+" AND "+and, append(c.buckets(), args...)...)
}

// Scored implements sqlfilter.Dialect.
func (c *condition) Scored(name, column, operator string, v driver.Value) sqlfilter.Clause {
	args := []driver.Value{c.lookup(scoreKind, name)}
	from := "SELECT n FROM scores"
	if column != "" && column != "value" {
		from += " CROSS JOIN details USING (n)"
	}
	from += " WHERE name = ?"
	if column != "" {
		from, args = from+" AND "+column+operator+"?", append(args, v)
	}
	return c.inList(from, args...)
}

// AnyScore implements sqlfilter.Dialect.
func (c *condition) AnyScore() sqlfilter.Clause {
	// A name at a time: the table has the requests of each name in the order of time.
	return c.inList("SELECT n FROM scores WHERE name IN (SELECT id FROM names WHERE kind = ?)", scoreKind)
}

// Property implements sqlfilter.Dialect.
func (*condition) Property(place int, _ string) string { return propertyAlias(place) + ".name" }

// Text implements sqlfilter.Dialect. NULL is the empty text.
func (c *condition) Text(l *storage.Leaf) sqlfilter.Clause {
	column, kind := "r."+l.Field.Column.Name, l.Field.Column.Names
	switch {
	case l.Field.Column.Detail && l.Text != "" && (l.Op == storage.Equals || l.Op == storage.NotEquals):
		return c.inBucketList("details", "n >> 43", l.Field.Column.Name+" = ?", l.Text).NotIf(l.Op == storage.NotEquals)
	case kind == "":
		return sqlfilter.Unsupported // an id, or what is not kept as names
	case l.Text == "" && (l.Op == storage.Equals || l.Op == storage.NotEquals):
		return c.Lacks(l.Field.Column).NotIf(l.Op == storage.NotEquals)
	case l.Op == storage.Equals:
		return sqlfilter.Exactly(column+" = ?", c.lookup(kind, l.Text))
	case l.Op == storage.NotEquals:
		return sqlfilter.Exactly(column+" IS NOT ?", c.lookup(kind, l.Text))
	}
	matches := storage.TextMatcher(l.Op, l.Text, storage.NewCancelCheck(c.ctx.Err))
	// The plus keeps SQLite from using the index, which has no order for many texts.
	list := c.matching("+"+column, "+"+column, kind, matches)
	if list.Support == storage.Exact && matches("") {
		list.SQL = "(" + column + " IS NULL OR " + list.SQL + ")"
	}
	return list
}

// labelKind is the kind of the labels that a leaf compares, "" if the leaf compares no labels.
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

// Label implements sqlfilter.Dialect. A negative operator is true when no text matches.
func (c *condition) Label(l *storage.Leaf) sqlfilter.Clause {
	kind := labelKind(l)
	if l.Field.Kind == storage.PropertyKey {
		return c.anyLabel(propertyKind(l.Text), func(string) bool { return true })
	}
	if l.Op == storage.Equals || l.Op == storage.NotEquals {
		return c.inBucketList("labels", "bucket", "label = ?", c.lookup(kind, l.Text)).NotIf(l.Op.Negative())
	}
	matches := storage.TextMatcher(l.Op, l.Text, storage.NewCancelCheck(c.ctx.Err))
	return c.anyLabel(kind, func(s string) bool { return matches(s) != l.Op.Negative() }).NotIf(l.Op.Negative())
}

// anyLabel is true of records with a label that matches. A few are looked for in each
// bucket, while for many it is faster to go through all labels.
func (c *condition) anyLabel(kind string, matches func(string) bool) sqlfilter.Clause {
	list := c.matching("label", "+label", kind, matches)
	if list.Support != storage.Exact {
		return list
	}
	return c.inBucketList("labels", "bucket", list.SQL, list.Args...)
}

// matching is true of records with a column that refers to a matching name of the kind. The
// clause lists the names that match, or the names that do not, whichever list is short enough.
// NULL is in neither list. The column may have two spellings, for a few names and for many.
func (c *condition) matching(few, many, kind string, matches func(string) bool) sqlfilter.Clause {
	if c.err != nil {
		return sqlfilter.Unsupported
	}
	limit := c.r.listedNames
	lists := map[bool][]int64{true: {}, false: {}}
	c.err = c.r.c.query(c.ctx, "SELECT id, name FROM names WHERE kind = ?", []driver.Value{kind}, func(row []driver.Value) error {
		yes := matches(row[1].(string))
		if lists[yes] = append(lists[yes], row[0].(int64)); len(lists[yes]) <= limit {
			return nil
		}
		if len(lists[!yes]) > limit {
			return errStop
		}
		lists[yes] = lists[yes][:limit+1]
		return nil
	})
	yes, no := lists[true], lists[false]
	switch {
	case len(yes) <= min(c.r.fewNames, limit):
		return sqlfilter.Exactly(few+" IN (SELECT value FROM json_each(?))", compactJSON(yes))
	case len(yes) <= limit:
		return sqlfilter.Exactly(many+" IN (SELECT value FROM json_each(?))", compactJSON(yes))
	case len(no) <= limit:
		return sqlfilter.Exactly(many+" IN (SELECT id FROM names WHERE kind = ? AND id NOT IN (SELECT value FROM json_each(?)))", kind, compactJSON(no))
	}
	return sqlfilter.Unsupported
}
