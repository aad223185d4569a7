package sqlite

import (
	"database/sql/driver"
	"strings"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// byTime tells whether the query sorts by created_at alone.
func (x *query) byTime() (desc, ok bool) {
	switch {
	case x.Random || len(x.Sort) > 1:
		return false, false
	case len(x.Sort) == 0:
		return true, true
	}
	return x.Sort[0].Desc, x.Sort[0].Key == storage.SortCreatedAt
}

// order is an ORDER BY with the joins that it needs, and their arguments.
type order struct {
	by, joins string
	args      []driver.Value
}

func (x *query) timeOrder(desc bool) order {
	switch {
	case x.where.byLabel:
		return order{by: "l.bucket" + direction(desc) + ", l.n" + direction(desc)}
	case x.where.byUser:
		return order{by: "r.n >> 43" + direction(desc) + ", r.n" + direction(desc)}
	}
	return order{by: "r.n" + direction(desc)}
}

func direction(desc bool) string {
	if desc {
		return " DESC"
	}
	return " ASC"
}

// sortExpressions are what SQL orders by that is no column; NULL is the lack of a
// value.
var sortExpressions = map[storage.SortKey]string{
	storage.SortCreatedAt:      "r.n >> 20",
	storage.SortCacheCreatedAt: "CASE WHEN r.cache_reference IS NOT NULL THEN r.n >> 20 END",
	storage.SortLastActive:     "coalesce(r.responded_at, r.n >> 20)",
	storage.SortTotalTokens:    totalTokens,
	storage.SortIsCached:       "r.cache_reference IS NOT NULL",
}

// sortColumn is what SQL orders by for the sort key at i.
func (x *query) sortColumn(i int) string {
	if x.Sort[i].Key == storage.SortProperties {
		return propertyAlias(i) + ".name"
	}
	if by, ok := sortExpressions[x.Sort[i].Key]; ok {
		return by
	}
	column := x.Sort[i].Key.Column()
	if column.Names != "" {
		return "(SELECT name FROM names WHERE id = r." + column.Name + ")"
	}
	return "r." + column.Name
}

// propertyAlias names the join that has the property of the sort key at i.
func propertyAlias(i int) string {
	return "p" + string(rune('a'+i)) // storage.MaxSortKeys is less than the alphabet
}

func (x *query) order() (o order) {
	if x.Random {
		return order{by: "random()"}
	}
	var by []string
	for i, s := range x.Sort {
		if s.Key == storage.SortProperties {
			p := propertyAlias(i)
			o.joins += " LEFT JOIN (SELECT v.name, m.n FROM labels m CROSS JOIN names v ON v.id = m.label WHERE v.kind = ?) " + p + " ON " + p + ".n = r.n"
			o.args = append(o.args, propertyKind(s.Name))
		}
		by = append(by, x.sortColumn(i)+direction(s.Desc)+" NULLS LAST")
	}
	// The plus keeps SQLite from going along the index on ids, to each row by itself.
	o.by = strings.Join(append(by, "+r.request_id"+direction(x.Sort[0].Desc)), ", ")
	return o
}

// after chooses the records behind the cursor of the query.
func (x *query) after() {
	if x.After == nil {
		return
	}
	id := []byte(x.After.Tie[0])
	if desc, ok := x.byTime(); ok {
		key := "r.n"
		if x.where.byLabel {
			key = "l.n"
		}
		ms, _ := x.After.Values[0].Any().(int64)
		at := storage.Timestamp(ms)
		if desc {
			x.where.write(" AND "+key+" < ? AND NOT ("+key+" >= ? AND r.request_id >= ?)", columnar.FirstKey(at+1), columnar.FirstKey(at), id)
		} else {
			x.where.write(" AND "+key+" >= ? AND NOT ("+key+" < ? AND r.request_id <= ?)", columnar.FirstKey(at), columnar.FirstKey(at+1), id)
		}
		return
	}
	// (key behind the value) or (key equal, and (the next key behind its value) or ...)
	x.where.write(" AND ")
	for i, s := range x.Sort {
		column, value := "("+x.sortColumn(i)+")", x.After.Values[i].Any()
		if value == nil {
			x.where.write("(" + column + " IS NULL AND ")
			continue
		}
		x.where.write("("+column+beyond(s.Desc)+" OR "+column+" IS NULL OR "+column+" = ? AND ", value, value)
	}
	x.where.write("r.request_id"+beyond(x.Sort[0].Desc)+strings.Repeat(")", len(x.Sort)), id)
}

// beyond compares with what comes before in a direction.
func beyond(desc bool) string {
	if desc {
		return " < ?"
	}
	return " > ?"
}
