package clickhouse

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// byTime tells whether the query sorts by created_at alone.
func byTime(q *storage.RequestQuery) (desc, ok bool) {
	switch {
	case q.Random || len(q.Sort) > 1:
		return false, false
	case len(q.Sort) == 0:
		return true, true
	}
	return q.Sort[0].Desc, q.Sort[0].Key == storage.SortCreatedAt
}

// sortKeys are what the server sorts by that is no column; NULL is the lack of a value.
var sortKeys = map[storage.SortKey]string{
	storage.SortCreatedAt:      "toUnixTimestamp64Milli(created_at)",
	storage.SortCacheCreatedAt: "if(cache_reference != " + noID + ", toUnixTimestamp64Milli(created_at), NULL)",
	storage.SortLastActive:     "toUnixTimestamp64Milli(if(responded_at = fromUnixTimestamp64Milli(0, 'UTC'), created_at, responded_at))",
	storage.SortTotalTokens:    "input + output",
	storage.SortIsCached:       "toInt64(cache_reference != " + noID + ")",
}

// sortKey is the expression of a key.
func (p *params) sortKey(s storage.Sort) string {
	if s.Key == storage.SortProperties {
		name := p.text(s.Name)
		return "if(mapContains(properties, " + name + "), properties[" + name + "], NULL)"
	}
	if by, ok := sortKeys[s.Key]; ok {
		return by
	}
	column := s.Key.Column()
	if column.Type() == storage.TextColumn {
		return "nullIf(" + column.Name + ", '')"
	}
	return column.Name
}

// order is the ORDER BY of a query. It is false of one that sorts by a property which
// some records were given later, or by the one without a name, which a map of
// LowCardinality keys does not find.
func (r *reader) order(ctx context.Context, q *storage.RequestQuery) (order string, ok bool, err error) {
	if q.Random {
		return "rand()", true, nil
	}
	var keys []string
	for _, s := range q.Sort {
		if s.Key == storage.SortProperties {
			if s.Name == "" {
				return "", false, nil
			}
			if late, err := r.anyLate(ctx, s.Name); late || err != nil {
				return "", false, err
			}
		}
		keys = append(keys, r.sortKey(s)+direction(s.Desc)+" NULLS LAST")
	}
	return strings.Join(append(keys, "UUIDToNum(request_id)"+direction(q.Sort[0].Desc)), ", "), true, nil
}

// beyond compares with what comes earlier in an order.
func beyond(desc bool) string {
	if desc {
		return " < "
	}
	return " > "
}

func direction(desc bool) string {
	if desc {
		return " DESC"
	}
	return " ASC"
}

// after chooses the records behind the cursor of a query: those whose first key is
// beyond the cursor's, or the same and the next one beyond, and so on.
func (p *params) after(q *storage.RequestQuery) string {
	id := uuid.UUID([]byte(q.After.Tie[0]))
	condition := "UUIDToNum(request_id)" + beyond(q.Sort[0].Desc) + "UUIDToNum(" + p.bind(id.String(), "UUID") + ")"
	for i := len(q.Sort) - 1; i >= 0; i-- {
		column := p.sortKey(q.Sort[i])
		switch v := q.After.Values[i].Any().(type) {
		case nil:
			condition = fmt.Sprintf("(isNull(%s) AND %s)", column, condition)
		case string:
			condition = behind(column, beyond(q.Sort[i].Desc), p.text(v), condition)
		case int64:
			condition = behind(column, beyond(q.Sort[i].Desc), p.integer(v), condition)
		}
	}
	return condition
}

// behind is true beyond a value, where there is none, and next at the value itself.
func behind(column, beyond, value, next string) string {
	return fmt.Sprintf("(isNull(%s) OR ifNull(%[1]s%s%s, 0) OR ifNull(%[1]s = %[3]s, 0) AND %s)", column, beyond, value, next)
}
