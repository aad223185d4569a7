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
	// column is what the rows are grouped by.
	column int
	table  *table
	// loader reads what is not in memory, nil when all is. Then the table has the
	// texts of what was read.
	loader *loader
	tags   map[string]string
}

var groupColumns = map[storage.DimensionName]int{
	storage.ByUser:    userColumn,
	storage.BySession: sessionColumn,
	storage.ByScore:   scoreColumn,
}

// Key is the text of a group.
func (x *rows) Key(group int) storage.Key {
	t := x.table.terms(x.column).term(group)
	return storage.Key{ID: t.id, Name: t.name, Tag: x.tags[t.id]}
}

// Err is the error of the query's context.
func (x *rows) Err() error { return x.ctx.Err() }

// Scan decides on what the columns have, and asks the database for the rest.
func (x *rows) Scan(f storage.Filter, w storage.Window, each func(*storage.Row) bool) error {
	s := scan{rows: x, each: each, from: firstN(w.From), to: lastN(w.To)}
	s.plan(f)
	chunks := x.table.requests
	switch {
	case x.column == scoreColumn && x.loader != nil:
		return s.streamScores()
	case x.column == scoreColumn:
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
