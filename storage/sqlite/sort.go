package sqlite

import (
	"database/sql/driver"
	"strings"

	"github.com/weirhq/weir/storage"
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
	if x.where.byLabel {
		return order{by: "l.n" + direction(desc)}
	}
	return order{by: "r.n" + direction(desc)}
}

func direction(desc bool) string {
	if desc {
		return " DESC"
	}
	return " ASC"
}

// sortColumns are what SQL orders by; NULL is the lack of a value.
var sortColumns = map[storage.SortKey]string{
	storage.SortCreatedAt:        "r.n >> 20",
	storage.SortCacheCreatedAt:   "CASE WHEN r.cache_reference IS NOT NULL THEN r.n >> 20 END",
	storage.SortLatency:          "r.latency",
	storage.SortLastActive:       "coalesce(r.responded_at, r.n >> 20)",
	storage.SortTotalTokens:      totalTokens,
	storage.SortCompletionTokens: "r.output",
	storage.SortPromptTokens:     "r.input",
	storage.SortUserID:           "(SELECT name FROM names WHERE id = r.user)",
	storage.SortBodyModel:        "(SELECT name FROM names WHERE id = r.response_model)",
	storage.SortIsCached:         "r.cache_reference IS NOT NULL",
	storage.SortCost:             "r.cost",
	storage.SortTimeToFirstToken: "r.ttft",
}

func (x *query) order() (o order) {
	if x.Random {
		return order{by: "random()"}
	}
	var by []string
	for i, s := range x.Sort {
		column := sortColumns[s.Key]
		if s.Key == storage.SortProperties {
			p := "p" + string(rune('a'+i)) // storage.MaxSortKeys is less than the alphabet
			column = p + ".name"
			o.joins += " LEFT JOIN (SELECT v.name, m.n FROM names v JOIN labels m ON m.label = v.id WHERE v.kind = ?) " + p + " ON " + p + ".n = r.n"
			o.args = append(o.args, propertyKind(s.Name))
		}
		by = append(by, column+direction(s.Desc)+" NULLS LAST")
	}
	o.by = strings.Join(append(by, "r.request_id"+direction(x.Sort[0].Desc)), ", ")
	return o
}
