package sqlite

import (
	"context"
	"database/sql/driver"
	"math"
	"slices"
)

// loadColumns are the columns of requests which a table has.
var loadColumns = only(requestColumns, "org", "provider", "model", "status", "latency", "cost", "input", "output",
	"user", "session", "session_name", "responded_at", "attempt_of")

// loadPages is the number of pages that make a chunk: rows are read in pages of so
// many that looking their names up costs little.
const loadPages = 8

// loader reads what a table has, in pages.
type loader struct {
	ctx      context.Context
	r        reader
	values   []driver.Value
	meanings map[int64]string
	row      row
}

// newLoader reads with names of its own: all those of a table would drive out
// what other queries remember.
func newLoader(ctx context.Context, r reader) *loader {
	return &loader{ctx: ctx, r: reader{r.c, new(nameReader)}}
}

var loadRequests = "SELECT n, " + columnList(loadColumns, "") + " FROM requests WHERE n > ? ORDER BY n LIMIT ?"

// requests appends the requests after a key to the table, a chunk at most, and
// answers the last one's; it answers errStop when there are no more.
func (l *loader) requests(t *table, after int64) (last int64, err error) {
	last = after
	page := chunkRows / loadPages
	for range loadPages {
		columns := func(i int) bool { return i > 0 && loadColumns[i-1].kind != "" }
		if err := l.page(loadRequests, 1+len(loadColumns), columns, last, int64(page)); err != nil {
			return last, err
		}
		for values := range slices.Chunk(l.values, 1+len(loadColumns)) {
			l.begin(values[0])
			for i, c := range loadColumns {
				l.decode(c, values[1+i])
			}
			t.add(&l.row)
			last = l.row.n
		}
		if len(l.values) < page*(1+len(loadColumns)) {
			return last, errStop
		}
	}
	return last, nil
}

// scorePlace is the key of a score.
type scorePlace struct{ name, n int64 }

var firstScore = scorePlace{n: math.MinInt64}

const loadScores = `SELECT s.n, s.name, r.org, s.value, s.name FROM
	(SELECT * FROM scores WHERE (name, n) > (?, ?) ORDER BY name, n LIMIT ?) s JOIN requests r ON r.n = s.n ORDER BY s.name, s.n`

// scores appends the scores after a place to the table, as requests does.
func (l *loader) scores(t *table, after scorePlace) (last scorePlace, err error) {
	last = after
	const width = 5
	page := chunkRows / loadPages
	for range loadPages {
		names := func(i int) bool { return i == 1 || i == 2 }
		if err := l.page(loadScores, width, names, last.name, last.n, int64(page)); err != nil {
			return last, err
		}
		for values := range slices.Chunk(l.values, width) {
			l.begin(values[0])
			l.row.Org = l.meanings[values[2].(int64)]
			t.addScore(&l.row, l.meanings[values[1].(int64)], values[3].(float64))
			last = scorePlace{values[1].(int64), l.row.n}
		}
		if len(l.values) < page*width {
			return last, errStop
		}
	}
	return last, nil
}

// page reads rows and what the columns mean that are names.
func (l *loader) page(query string, width int, named func(column int) bool, args ...driver.Value) error {
	l.values = l.values[:0]
	l.meanings = make(map[int64]string)
	err := l.r.c.query(l.ctx, query, args, func(row []driver.Value) error {
		l.values = append(l.values, row...)
		for i, v := range row {
			if id, ok := v.(int64); ok && named(i) {
				l.meanings[id] = ""
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.r.names.names(l.ctx, l.r.c, l.meanings)
}

func (l *loader) begin(n driver.Value) {
	l.row = row{n: n.(int64)}
	l.row.CreatedAt = createdAt(l.row.n)
}

func (l *loader) decode(c column, v driver.Value) {
	if v == nil {
		return
	}
	if c.kind != "" {
		v = l.meanings[v.(int64)]
	}
	c.decode(&l.row, v)
}

// load reads the whole table, until it is larger than limit bytes: then it
// answers errTooLarge.
func (l *loader) load(limit int) (*table, error) {
	t := &table{newest: new(newest)}
	var err error
	for last := int64(math.MinInt64); err == nil && t.size() <= limit; {
		last, err = l.requests(t, last)
	}
	if err == errStop {
		err = nil
	}
	for last := firstScore; err == nil && t.size() <= limit; {
		last, err = l.scores(t, last)
	}
	switch {
	case err != nil && err != errStop:
		return nil, err
	case t.size() > limit:
		return nil, errTooLarge
	}
	return t, nil
}
