package clickhouse

import (
	"context"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/sqlfilter"
)

// order is the ORDER BY of a query. ok is false for a query that sorts by a score, by a property
// which some records were given later, or by the property without a name: a map of
// LowCardinality keys does not find the empty name.
func (r *reader) order(ctx context.Context, q *storage.RequestQuery) (order string, ok bool, err error) {
	switch {
	case q.Random:
		return "rand()", true, nil
	case q.SortsByScore():
		return "", false, nil
	}
	for _, s := range q.Sort {
		if s.Key != storage.SortProperties {
			continue
		}
		if s.Name == "" {
			return "", false, nil
		}
		if late, err := r.anyLate(ctx, s.Name); late || err != nil {
			return "", false, err
		}
	}
	return sqlfilter.OrderBy(r.params, q, idOrder("request_id")), true, nil
}

// idOrder is what ids are sorted by.
func idOrder(id string) string { return "UUIDToNum(" + id + ")" }
