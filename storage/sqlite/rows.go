package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"path/filepath"

	"github.com/weirhq/weir/storage"
)

// rows are storage.Rows of what files of columns have, and the tail in memory, and else
// the database.
type rows struct {
	ctx      context.Context
	r        reader
	contents storage.Contents
	org      string
	orgID    uint32 // 0 if there is none
	// dimensions are what the rows are grouped by. scores is true of rows that are
	// scores.
	dimensions []dimension
	scores     bool
	tail       *tail // nil if it is too large
	files      *columnFiles
	// failed is the error of a dimension or a predicate that reads the database.
	failed error
}

// Key is the text of a group.
func (x *rows) Key(dimension, group int) storage.Key { return x.dimensions[dimension].key(group) }

// Err is the error of the query's context.
func (x *rows) Err() error { return x.ctx.Err() }

// Scan decides on what the columns have, and asks the database for the rest.
func (x *rows) Scan(f storage.Filter, w storage.Window, parts storage.RowParts, each func(*storage.Row) bool) error {
	s := scan{rows: x, each: each, parts: parts, from: firstN(w.From), to: lastN(w.To)}
	s.plan(f)
	if x.orgID == 0 {
		return nil
	}
	regions, err := x.r.regions(x.ctx, s.from, s.to)
	if err != nil {
		return err
	}
	after := s.from - 1 // what has been scanned ends here
	for _, known := range regions {
		s.gap(after, min(known.after, s.to))
		s.file(known, max(after, known.after), min(known.last, s.to))
		after = known.last
	}
	if x.tail == nil {
		s.gap(after, s.to)
		return cmp.Or(s.err, s.failed)
	}
	s.gap(after, min(x.tail.after, s.to))
	after = max(after, x.tail.after)
	for i := range x.tail.chunks {
		s.chunk(&x.tail.chunks[i], after, s.to)
	}
	return cmp.Or(s.err, s.failed)
}

// file scans the requests of a file between two keys, and those that have changed since
// it was written.
func (s *scan) file(known region, after, to int64) {
	if s.ended() || after >= to {
		return
	}
	c, err := s.reader.read(filepath.Join(s.files.dir, known.file), known, &s.needs, s.properties)
	if err != nil {
		s.files.report(known)
		s.gap(after, to)
		return
	}
	var changed []int64
	s.err = s.r.c.query(s.ctx, "SELECT n FROM column_changes WHERE n > ? AND n <= ? ORDER BY n", []driver.Value{after, to}, func(row []driver.Value) error {
		n := row[0].(int64)
		c.delete(n)
		changed = append(changed, n)
		return nil
	})
	s.chunk(c, after, to)
	if len(changed) == 0 || s.ended() {
		return
	}
	var now chunk
	s.err = loader{s.ctx, s.r}.keys(changed, func() *chunk { return &now })
	s.chunk(&now, after, to)
}

// gap scans requests between two keys as the database has them.
func (s *scan) gap(after, to int64) {
	for !s.ended() && after < to {
		var c chunk
		var rows int
		rows, s.err = loader{s.ctx, s.r}.between(after, to, chunkRows, func() *chunk { return &c })
		s.chunk(&c, after, to)
		if rows < chunkRows {
			return
		}
		after = c.high
	}
}

var _ storage.Rows = (*rows)(nil)
