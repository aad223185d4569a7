package sqlfilter

import (
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// Key returns what SQL sorts by for the sort key at a place, NULL if a record has no value.
func Key(d Dialect, q *storage.RequestQuery, place int) string {
	created, cached := d.Value(column("created_at")), d.Lacks(cacheReference).NotIf(true).SQL
	switch s := q.Sort[place]; s.Key {
	case storage.SortProperties:
		return d.Property(place, s.Name)
	case storage.SortCacheCreatedAt:
		return "CASE WHEN " + cached + " THEN " + created + " END"
	case storage.SortLastActive:
		return "coalesce(" + d.Value(column("responded_at")) + ", " + created + ")"
	case storage.SortTotalTokens:
		return totalTokens(d)
	case storage.SortIsCached:
		return "CASE WHEN " + cached + " THEN 1 ELSE 0 END"
	default:
		return d.Value(s.Key.Column())
	}
}

// OrderBy sorts by the keys of a query, and breaks ties by id.
func OrderBy(d Dialect, q *storage.RequestQuery, id string) string {
	var keys strings.Builder
	for i, s := range q.Sort {
		keys.WriteString(Key(d, q, i) + Direction(s.Desc) + " NULLS LAST, ")
	}
	return keys.String() + id + Direction(q.Sort[0].Desc)
}

// After chooses the records after the cursor of a query. A record is after if its first key is
// after the cursor's, or if the first keys are equal and the next key is after, and so on.
// order returns the expression by which an id is sorted.
func After(d Dialect, q *storage.RequestQuery, order func(id string) string) Clause {
	id := d.BindID(uuid.UUID([]byte(q.After.Tie[0])))
	next := Exactly(order(d.Value(column("request_id")))+Beyond(q.Sort[0].Desc)+order(id.SQL), id.Args...)
	for i := len(q.Sort) - 1; i >= 0; i-- {
		key, value := Key(d, q, i), q.After.Values[i].Any()
		if value == nil {
			next.SQL = "(" + key + " IS NULL AND " + next.SQL + ")"
			continue
		}
		next = Behind(d, key, q.Sort[i].Desc, d.Bind(value), d.Bind(value), next)
	}
	return next
}

// Behind is true after a value and where there is no value. At the value itself, next
// decides. beyond and equal both bind the value.
func Behind(d Dialect, key string, desc bool, beyond, equal, next Clause) Clause {
	return Exactly("("+key+" IS NULL OR "+d.Known(key+Beyond(desc)+beyond.SQL)+" OR "+d.Known(key+" = "+equal.SQL)+" AND "+next.SQL+")",
		append(append(beyond.Args, equal.Args...), next.Args...)...)
}

// Beyond compares with what comes earlier in an order.
func Beyond(desc bool) string {
	if desc {
		return " < "
	}
	return " > "
}

// Direction is the direction of a key in ORDER BY.
func Direction(desc bool) string {
	if desc {
		return " DESC"
	}
	return " ASC"
}
