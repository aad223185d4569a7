package sqlite

import (
	"context"

	"github.com/weirhq/weir/storage"
)

// rows are storage.Rows of a table in memory, or of the database in chunks that
// are forgotten again.
type rows struct {
	ctx      context.Context
	r        reader
	contents storage.Contents
	org      string
	// dimensions are what the rows are grouped by. scores is true of rows that are
	// scores.
	dimensions []dimension
	scores     bool
	table      *table
	// loader reads what is not in memory, nil when all is. Then the table has the
	// texts of what was read.
	loader *loader
	// failed is the error of a dimension that reads the database.
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
	chunks := x.table.requests
	switch {
	case x.scores && x.loader != nil:
		return s.streamScores()
	case x.scores:
		chunks = x.table.scores
	case x.loader != nil:
		return s.streamRequests()
	}
	for i := range chunks {
		if more, err := s.chunk(&chunks[i]); err != nil || !more {
			return err
		}
	}
	return nil
}

var _ storage.Rows = (*rows)(nil)
