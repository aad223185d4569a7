package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// query is one request query on its way. SQL finds the keys of the records, and
// the page's records are read by them.
type query struct {
	*storage.RequestQuery
	r        reader
	contents storage.Contents
	where    condition
	// reads is what is read of records on which SQL alone does not decide.
	reads *projection
}

func requests(ctx context.Context, r reader, contents storage.Contents, q *storage.RequestQuery) ([]*storage.Record, error) {
	if q.Limit == 0 {
		return nil, nil
	}
	x := &query{RequestQuery: q, r: r, contents: contents, where: condition{ctx: ctx, r: r}}
	if x.where.query(q); x.where.err != nil {
		return nil, x.where.err
	}
	decides := x.where.exact() && !q.SortsByContent()
	if _, byTime := x.byTime(); byTime || decides {
		x.after()
	}
	if !decides {
		return x.match(ctx)
	}
	keys, err := x.keys(ctx)
	if err != nil {
		return nil, err
	}
	return x.page(ctx, keys)
}

// page reads the records of the page.
func (x *query) page(ctx context.Context, keys []int64) ([]*storage.Record, error) {
	rows, err := x.r.load(ctx, keys)
	if err != nil {
		return nil, err
	}
	page := make([]*storage.Record, len(rows))
	for i, row := range rows {
		page[i] = &row.Record
	}
	return page, nil
}

// statement reads columns of the records that the clause chooses.
func (x *query) statement(columns, joins string, o order) (string, []driver.Value) {
	from := " FROM requests r"
	if x.where.byLabel {
		// In this order: without statistics SQLite would go through requests.
		from = " FROM labels l CROSS JOIN requests r ON r.n = l.n"
	}
	return "SELECT " + columns + from + joins + o.joins + " WHERE " + x.where.sql.String() + " ORDER BY " + o.by,
		slices.Concat(o.args, x.where.args)
}

// joinDetails joins the details, which lie in the order of the requests; without
// statistics SQLite would as well begin with them.
const joinDetails = " CROSS JOIN details d ON d.n = r.n"

// keyColumns identify a record.
const keyColumns = "r.n, r.request_id"

// scan calls each with the keys of the records that the clause chooses, in order.
func (x *query) scan(ctx context.Context, o order, each func(n int64, id uuid.UUID) error) error {
	statement, args := x.statement(keyColumns, "", o)
	return x.r.c.query(ctx, statement, args, func(row []driver.Value) error {
		return each(row[0].(int64), uuid.UUID(row[1].([]byte)))
	})
}

// keys are those of the page, where SQL decides on every record.
func (x *query) keys(ctx context.Context) (keys []int64, err error) {
	if desc, ok := x.byTime(); ok {
		return x.keysByTime(ctx, desc)
	}
	statement, args := x.statement(keyColumns, "", x.order())
	args = append(args, int64(x.Limit), int64(x.Offset))
	err = x.r.c.query(ctx, statement+" LIMIT ? OFFSET ?", args, func(row []driver.Value) error {
		keys = append(keys, row[0].(int64))
		return nil
	})
	return keys, err
}

// keysByTime goes along the order of n, which is the order of time, and puts
// those of one millisecond into the order of their ids.
func (x *query) keysByTime(ctx context.Context, desc bool) (keys []int64, err error) {
	type key struct {
		n  int64
		id uuid.UUID
	}
	var same []key
	passed := 0
	flush := func() {
		slices.SortFunc(same, func(a, b key) int {
			if desc {
				a, b = b, a
			}
			return slices.Compare(a.id[:], b.id[:])
		})
		for _, k := range same {
			if passed >= x.Offset && len(keys) < x.Limit {
				keys = append(keys, k.n)
			}
			passed++
		}
		same = same[:0]
	}
	err = x.scan(ctx, x.timeOrder(desc), func(n int64, id uuid.UUID) error {
		if len(same) > 0 && createdAt(n) != createdAt(same[0].n) {
			flush()
			if len(keys) == x.Limit {
				return errStop
			}
		}
		same = append(same, key{n, id})
		return nil
	})
	flush()
	return keys, err
}
