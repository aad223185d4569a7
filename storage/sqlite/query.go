package sqlite

import (
	"context"
	"database/sql/driver"
	"slices"
	"strings"

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
}

func requests(ctx context.Context, r reader, contents storage.Contents, q *storage.RequestQuery) ([]*storage.Record, error) {
	if q.Limit == 0 {
		return nil, nil
	}
	x := &query{RequestQuery: q, r: r, contents: contents, where: condition{ctx: ctx, r: r}}
	if x.where.query(q); x.where.err != nil {
		return nil, x.where.err
	}
	if x.where.inexact || q.SortsByContent() {
		return x.match(ctx)
	}
	keys, err := x.keys(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := r.load(ctx, keys)
	if err != nil {
		return nil, err
	}
	page := make([]*storage.Record, len(rows))
	for i, row := range rows {
		page[i] = &row.Record
	}
	return page, nil
}

// statement finds the keys of the records that the clause chooses.
func (x *query) statement(o order) (string, []driver.Value) {
	from := " FROM requests r"
	if x.where.byLabel {
		// In this order: without statistics SQLite would go through requests.
		from = " FROM labels l CROSS JOIN requests r ON r.n = l.n"
	}
	return "SELECT r.n, r.request_id" + from + o.joins + " WHERE " + x.where.sql.String() + " ORDER BY " + o.by,
		slices.Concat(o.args, x.where.args)
}

// scan calls each with those keys, in order.
func (x *query) scan(ctx context.Context, o order, each func(n int64, id uuid.UUID) error) error {
	statement, args := x.statement(o)
	return x.r.c.query(ctx, statement, args, func(row []driver.Value) error {
		return each(row[0].(int64), uuid.UUID(row[1].([]byte)))
	})
}

// keys are those of the page, where SQL decides on every record.
func (x *query) keys(ctx context.Context) (keys []int64, err error) {
	if desc, ok := x.byTime(); ok {
		return x.keysByTime(ctx, desc)
	}
	statement, args := x.statement(x.order())
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

// matchChunk is the number of records that match reads at a time.
const matchChunk = 256

// candidate is a record that matched, with its place in the order.
type candidate struct {
	*row
	rank storage.Rank
}

// match answers what SQL alone cannot: records stream through storage.Match,
// and the best of them are kept.
func (x *query) match(ctx context.Context) ([]*storage.Record, error) {
	o := x.timeOrder(true)
	desc, byTime := x.byTime()
	switch {
	case x.Random:
		o = x.order()
	case byTime:
		o = x.timeOrder(desc)
	}
	want := x.Offset + x.Limit
	var kept []candidate
	var chunk []int64
	// next takes a chunk and tells whether the page is complete.
	next := func() (complete bool, err error) {
		rows, err := x.r.load(ctx, chunk)
		if err != nil || len(rows) == 0 {
			return false, err
		}
		chunk = chunk[:0]
		for _, row := range rows {
			if kept, err = x.consider(ctx, kept, row); err != nil {
				return false, err
			}
		}
		if x.Random {
			return len(kept) >= want, nil
		}
		slices.SortFunc(kept, func(a, b candidate) int { return a.rank.Compare(b.rank) })
		if len(kept) < want {
			return false, nil
		}
		clear(kept[want:])
		kept = kept[:want]
		return byTime && rows[len(rows)-1].CreatedAt != kept[want-1].CreatedAt, nil
	}
	err := x.scan(ctx, o, func(n int64, _ uuid.UUID) error {
		if chunk = append(chunk, n); len(chunk) < matchChunk {
			return nil
		}
		complete, err := next()
		if complete {
			return errStop
		}
		return err
	})
	if err == nil {
		_, err = next()
	}
	if err != nil {
		return nil, err
	}
	var page []*storage.Record
	for _, c := range kept[min(x.Offset, len(kept)):min(want, len(kept))] {
		page = append(page, &c.Record)
	}
	return page, nil
}

// consider appends a row to the candidates when the filter is true of it.
func (x *query) consider(ctx context.Context, kept []candidate, r *row) ([]candidate, error) {
	var content *storage.Content
	var err error
	loaded := false
	load := func() *storage.Content {
		if !loaded {
			loaded = true
			content, err = x.contents.Content(ctx, r.Content)
		}
		return content
	}
	if !storage.Match(x.Filter, &r.Record, load) || err != nil {
		return kept, err
	}
	if x.SortsByContent() {
		load()
	}
	return append(kept, candidate{r, storage.RankBy(x.Sort, &r.Record, content)}), err
}

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
			column = "nullif(" + p + ".name, '')"
			o.joins += " LEFT JOIN (SELECT v.name, m.n FROM names v JOIN labels m ON m.label = v.id WHERE v.kind = ?) " + p + " ON " + p + ".n = r.n"
			o.args = append(o.args, propertyKind(s.Name))
		}
		by = append(by, column+direction(s.Desc)+" NULLS LAST")
	}
	o.by = strings.Join(append(by, "r.request_id"+direction(x.Sort[0].Desc)), ", ")
	return o
}
