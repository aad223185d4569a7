package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// query is one request query on its way. SQL finds the keys of the records, and
// the page's records are read by them.
type query struct {
	*storage.RequestQuery
	r        reader
	contents storage.Contents
	where    condition
	// reads is what is read of records if SQL alone cannot decide.
	reads *projection
}

func requests(ctx context.Context, r reader, contents storage.Contents, q *storage.RequestQuery) ([]*storage.Record, error) {
	if q.Limit == 0 {
		return nil, nil
	}
	x := &query{RequestQuery: q, r: r, contents: contents, where: newCondition(ctx, r, storage.Always)}
	if x.where.query(q); x.where.err != nil {
		return nil, x.where.err
	}
	if q.SortsByProperty() {
		if err := x.checkSort(ctx); err != nil {
			return nil, err
		}
	}
	decides := x.where.filter.Exact() && !q.SortsByContent() && !q.SortsByScore()
	if _, byTime := x.ByTime(); byTime || decides {
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

// checkSort counts the requests to sort no further than to the bound.
func (x *query) checkSort(ctx context.Context) error {
	sorted := int64(0)
	return x.where.each(x.contents, false, false, func() error {
		statement, args := x.statement("1", "", order{by: "NULL"})
		n, err := x.r.c.integer(ctx, "SELECT count(*) FROM ("+statement+" LIMIT ?)", append(args, int64(x.r.sortedRequests)+1)...)
		if sorted += n; err == nil && sorted > int64(x.r.sortedRequests) {
			err = storage.ErrSortWork(x.r.sortedRequests)
		}
		return err
	})
}

// page reads the records of the page.
func (x *query) page(ctx context.Context, keys []int64) ([]*storage.Record, error) {
	shown := wholeRecord
	if x.Columns != nil {
		names := append([]string{"request_id"}, x.Columns...)
		shown = project(only(requestColumns, names...), only(detailColumns, names...))
	}
	rows, err := x.r.project(ctx, shown, keys)
	if err != nil {
		return nil, err
	}
	page := make([]*storage.Record, len(rows))
	for i, row := range rows {
		page[i] = &row.record
	}
	return page, nil
}

// statement reads columns of the records that the clause chooses.
func (x *query) statement(columns, joins string, o order) (string, []driver.Value) {
	from, args := x.where.source()
	return "SELECT " + columns + from + joins + o.joins + " WHERE " + x.where.sql.String() + " ORDER BY " + o.by,
		slices.Concat(args, o.args, x.where.args)
}

// joinDetails joins the details, which lie in the order of the requests. CROSS keeps
// SQLite, which has no statistics, from beginning with the details.
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

// keys are the keys of the page, if SQL decides on every record.
func (x *query) keys(ctx context.Context) (keys []int64, err error) {
	if desc, ok := x.ByTime(); ok {
		return x.keysByTime(ctx, desc)
	}
	statement, args := x.statement(keyColumns, "", x.order())
	return x.r.c.integers(ctx, statement+" LIMIT ? OFFSET ?", append(args, int64(x.Limit), int64(x.Offset))...)
}

// keysByTime goes along the order of n, which is the order of time, and puts
// requests of the same millisecond into the order of their ids.
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
		if len(same) > 0 && columnar.CreatedAt(n) != columnar.CreatedAt(same[0].n) {
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

// reader reads records on one connection.
type reader struct {
	c     *conn
	names *nameReader
	bounds
}

// begin fixes what the transaction of the reader sees. Without begin, the first query
// fixes it.
func (r reader) begin(ctx context.Context) error {
	_, err := r.c.integer(ctx, "SELECT 1 FROM journals")
	return err
}

// projection is what is read of records.
type projection struct {
	columns []column
	named   []int  // which of the columns have ids of names
	list    string // of the columns after the key
	query   string
	summed  bool // the sums are among the columns
}

func project(requests, details []column) *projection {
	p := &projection{columns: slices.Concat(requests, details)}
	for i := range p.columns {
		if c := &p.columns[i]; c.names != "" && c.decode != nil {
			p.named = append(p.named, i)
		}
	}
	p.list = "r.n, " + columnList(requests, "r.")
	if len(details) > 0 {
		p.list += ", " + columnList(details, "d.")
	}
	// The order keeps SQLite from looking for each key among the keys once more.
	p.query = "SELECT " + p.list + " FROM requests r JOIN details d ON d.n = r.n WHERE r.n IN (SELECT value FROM json_each(?)) ORDER BY r.n"
	p.summed = isSummed(p.columns)
	return p
}

var (
	wholeRecord = project(requestColumns, detailColumns)
	// contentOnly is what it takes to read and match content.
	contentOnly = project(only(requestColumns, "request_id"), only(detailColumns, contentColumns...))
)

// contentColumns are the details that say where content is and how it reads.
var contentColumns = []string{"content_segment", "content_ordinal", "dialect"}

// load reads records in the order of their keys.
func (r reader) load(ctx context.Context, keys []int64) ([]*row, error) {
	return r.project(ctx, wholeRecord, keys)
}

// project reads something of records in the order of their keys. It compares the sums, if they
// are among the columns.
func (r reader) project(ctx context.Context, p *projection, keys []int64) ([]*row, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	found := make([]row, 0, len(keys))
	order := make([]int64, 0, len(keys))          // the keys of what was found, which ascend
	ids := make([]uint32, len(p.named)*len(keys)) // of names, column by column
	var sum rowSum
	err := r.c.query(ctx, p.query, []driver.Value{compactJSON(keys)}, func(values []driver.Value) error {
		if p.summed {
			if err := p.compare(&sum, values); err != nil {
				return fmt.Errorf("a record of %v: %w", columnar.CreatedAt(values[0].(int64)), err)
			}
		}
		at := len(found)
		if at == len(keys) {
			return fmt.Errorf("a record of %v is there twice: %w", columnar.CreatedAt(values[0].(int64)), errDamaged)
		}
		found = found[:at+1]
		p.decode(&found[at], values)
		order = append(order, found[at].n)
		for i, c := range p.named {
			if values[1+c] == nil {
				continue
			}
			id := values[1+c].(int64)
			if id < 1 || id > math.MaxUint32 {
				return fmt.Errorf("a name has the number %d: %w", id, errDamaged)
			}
			ids[i*len(keys)+at] = uint32(id)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	names, err := r.texts(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i, c := range p.named {
		for at := range found {
			switch id, name := ids[i*len(keys)+at], names[i*len(keys)+at]; {
			case id != 0 && name == "":
				return nil, fmt.Errorf("a name is not there: %w", errDamaged)
			case id != 0:
				p.columns[c].decode(&found[at], name)
			}
		}
	}
	rows := make([]*row, 0, len(keys))
	for _, n := range keys {
		at, ok := slices.BinarySearch(order, n)
		if !ok { // in the transaction that found the key
			return nil, fmt.Errorf("a record of %v is only in part there: %w", columnar.CreatedAt(n), errDamaged)
		}
		rows = append(rows, &found[at])
	}
	return rows, nil
}

// decode makes r of the values of the list, but for the names.
func (p *projection) decode(r *row, values []driver.Value) {
	*r = row{n: values[0].(int64)}
	r.record.CreatedAt = columnar.CreatedAt(r.n)
	for i, v := range values[1:] {
		if c := &p.columns[i]; v != nil && c.decode != nil && c.names == "" {
			c.decode(r, v)
		}
	}
}

// compare compares the sums of the tables with those of the values.
func (p *projection) compare(sum *rowSum, values []driver.Value) error {
	for i, v := range values[1:] {
		c := &p.columns[i]
		if c.name != sumColumn {
			sum.add(c, v)
		} else if err := sum.compare(v); err != nil {
			return err
		}
	}
	return nil
}

// byKey reads a record, or storage.ErrNotFound.
func (r reader) byKey(ctx context.Context, key storage.RecordKey) (*row, error) {
	n, err := r.find(ctx, key)
	if err != nil {
		return nil, err
	}
	rows, err := r.load(ctx, []int64{n})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, storage.ErrNotFound
	}
	return rows[0], nil
}

// orgID is the id of the organisation with the nameArgs that are the first arguments.
const orgID = "(SELECT id FROM names WHERE " + isName + ")"

// find returns the n of a record, or storage.ErrNotFound.
func (r reader) find(ctx context.Context, key storage.RecordKey) (n int64, err error) {
	err = storage.ErrNotFound
	failed := r.c.query(ctx, "SELECT n FROM requests WHERE request_id = ?4 AND org = "+orgID, append(nameArgs("org", key.Org), key.ID[:]), func(row []driver.Value) error {
		n, err = row[0].(int64), nil
		return nil
	})
	if failed != nil {
		return 0, failed
	}
	return n, err
}

// responseQuery finds calls by the two indexes. Together the indexes have the dialects of
// storage.Polled.
const responseQuery = "SELECT n FROM details JOIN requests USING (n)" +
	" WHERE (response_id = ?4 AND dialect IN ('responses', 'batches') OR response_id = ?4 AND " + isRun + ")" +
	" AND org = " + orgID + " ORDER BY n DESC LIMIT 1"

// byResponseID reads the newest record of a response in an organisation, or
// storage.ErrNotFound.
func (r reader) byResponseID(ctx context.Context, org, id string) (*row, error) {
	keys, err := r.c.integers(ctx, responseQuery, append(nameArgs("org", org), id)...)
	if err != nil {
		return nil, err
	}
	rows, err := r.load(ctx, keys)
	if err == nil && len(rows) == 0 {
		err = storage.ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// bucketBits are the bits of a key that stand below its bucket: 2.3 hours of created_at.
// The schema and queries have the number as well: SQLite uses an index on an expression
// only where the query spells the expression like the index.
const bucketBits = 43

// bucketOf is the bucket of a key.
func bucketOf(n int64) int64 { return n >> bucketBits }

// SQLite finds nothing in an index unless the first column is compared. inWindow compares the
// first column with each bucket between the first and the last one, which it takes, in the order
// of the buckets, which is also the order of the keys. The plus makes SQLite read the buckets
// first: else SQLite would go through the index and look for each row in buckets.
const (
	inWindow  = " IN (SELECT +bucket FROM buckets WHERE bucket BETWEEN ? AND ?)"
	inBuckets = "bucket" + inWindow
)
