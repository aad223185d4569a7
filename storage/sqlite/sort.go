package sqlite

import (
	"database/sql/driver"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
	"github.com/weirhq/weir/storage/sqlfilter"
)

// order is an ORDER BY with the joins that it needs, and their arguments.
type order struct {
	by, joins string
	args      []driver.Value
	desc      bool // of an order by time: the newest first
}

func (x *query) timeOrder(desc bool) order {
	direction := sqlfilter.Direction(desc)
	by := x.where.key() + direction
	switch {
	case x.where.byLabel:
		by = "l.bucket" + direction + ", " + by
	case x.where.byUser:
		by = "r.n >> 43" + direction + ", " + by
	}
	return order{by: by, desc: desc}
}

// propertyAlias names the join that has the property of the sort key at i.
func propertyAlias(i int) string {
	return "p" + string(rune('a'+i)) // storage.MaxSortKeys is less than the alphabet
}

func (x *query) order() (o order) {
	if x.Random {
		return order{by: "random()"}
	}
	for i, s := range x.Sort {
		if s.Key == storage.SortProperties {
			p := propertyAlias(i)
			o.joins += " LEFT JOIN (SELECT v.name, m.n FROM labels m CROSS JOIN names v ON v.id = m.label WHERE v.kind = ?) " + p + " ON " + p + ".n = r.n"
			o.args = append(o.args, propertyKind(s.Name))
		}
	}
	// The plus keeps SQLite from going along the index on ids, to each row by itself.
	o.by = sqlfilter.OrderBy(&x.where, x.RequestQuery, "+r.request_id")
	return o
}

// after chooses the records after the cursor of the query. The bounds of the condition are those
// of a cursor in time.
func (x *query) after() {
	if x.After == nil {
		return
	}
	desc, ok := x.ByTime()
	if !ok {
		x.where.and(sqlfilter.After(&x.where, x.RequestQuery, func(id string) string { return id }))
		return
	}
	ms, _ := x.After.Values[0].Any().(int64)
	at, id := storage.Timestamp(ms), []byte(x.After.Tie[0])
	same := "(r.n >= ? AND r.n < ? AND r.request_id "
	if desc {
		same += ">= ?)"
	} else {
		same += "<= ?)"
	}
	x.where.write(" AND NOT "+same, columnar.FirstKey(at), columnar.FirstKey(at+1), id)
}
