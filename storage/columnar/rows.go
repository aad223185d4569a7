package columnar

import (
	"cmp"
	"context"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/weirhq/weir/storage"
)

// rows are storage.Rows of what files of columns have, and the tail in memory, and else
// the source.
type rows struct {
	ctx    context.Context
	source Source
	org    uint32 // 0 if there is none
	// dimensions are what the rows are grouped by. scores is true of rows that are
	// scores.
	dimensions []dimension
	scores     bool
	tail       *Tail // nil if it is too large
	turn       *Turn
	// reader reads the files of all scans: what has no room at once is scanned for again.
	reader fileReader
	// failed is the error of a dimension or a predicate that reads the source.
	failed error
}

// Keys are the texts of groups.
func (x *rows) Keys(dimension int, groups []int) []storage.Key {
	return x.dimensions[dimension].keys(groups)
}

// Room is the Room of the engine.
func (x *rows) Room() (groups, cells int) { return x.turn.engine.Room.Totals, x.turn.engine.Room.Cells }

// Err is the error of the query's context.
func (x *rows) Err() error { return x.ctx.Err() }

// Scan decides on what the columns have, and asks the source for the rest.
func (x *rows) Scan(f storage.Filter, w storage.Window, parts storage.RowParts, each func(*storage.Row) bool) error {
	s := scan{rows: x, each: each, parts: parts, from: FirstKey(w.From), to: LastKey(w.To)}
	s.plan(f)
	if x.org == 0 {
		return nil
	}
	regions, err := x.source.Regions(s.from, s.to)
	if err != nil {
		return err
	}
	after := s.from - 1 // what has been scanned ends here
	for _, known := range regions {
		s.gap(after, min(known.After, s.to))
		s.file(known, max(after, known.After), min(known.Last, s.to))
		after = known.Last
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

// file scans the requests of a file between two keys, and the requests that have changed
// since the file was written.
func (s *scan) file(known Region, after, to int64) {
	if s.ended() || after >= to {
		return
	}
	c, err := s.reader.read(filepath.Join(s.turn.engine.Dir, known.File), known, &s.needs, s.properties)
	if err != nil {
		s.source.Damaged(known)
		s.gap(after, to)
		return
	}
	var changed []int64
	changed, s.err = s.source.Changed(after, to)
	for _, n := range changed {
		c.delete(n)
	}
	s.chunk(c, after, to)
	if len(changed) == 0 || s.ended() {
		return
	}
	var now Chunk
	s.err = s.source.Keys(changed, func() *Chunk { return &now })
	s.chunk(&now, after, to)
}

// gap scans requests between two keys as the source has them.
func (s *scan) gap(after, to int64) {
	limit := s.turn.engine.ChunkRows
	for !s.ended() && after < to {
		var c Chunk
		var rows int
		rows, s.err = s.source.Between(after, to, limit, func() *Chunk { return &c })
		s.chunk(&c, after, to)
		if rows < limit {
			return
		}
		after = c.high
	}
}

var _ storage.Rows = (*rows)(nil)

// scan is one Scan of rows.
type scan struct {
	*rows
	each     func(*storage.Row) bool
	parts    storage.RowParts
	from, to int64 // keys of requests
	// holds is the part of the filter that the columns decide, nil if there is no such part.
	// residual is the part that the source decides.
	holds    predicate
	residual storage.Filter
	// needs are the columns that are read.
	needs [columnCount]bool
	// properties are read as well.
	properties []string
	// all are the requests of the whole scan that match the residual, nil until a chunk
	// asks for them.
	all *keySet
	// enough is true once each wants no more, and err is the error that ended the scan.
	enough bool
	err    error
}

func (s *scan) ended() bool { return s.enough || s.err != nil }

// need makes the scan read columns.
func (s *scan) need(columns ...int) {
	for _, i := range columns {
		s.needs[i] = true
	}
}

// plan splits the filter. The source decides what columns cannot decide alone, and finds
// requests by their properties.
func (s *scan) plan(f storage.Filter) {
	cancel := storage.NewCancelCheck(s.ctx.Err)
	leaves := make(map[*storage.Leaf]predicate)
	planned := func(properties bool) storage.Plan {
		return storage.PlanFilter(f, func(l *storage.Leaf) storage.Support {
			if isProperty(l) && !properties {
				return storage.Unsupported
			}
			holds, ok := leaves[l]
			if !ok {
				holds = s.leaf(l, cancel)
				leaves[l] = holds
			}
			if holds == nil {
				return storage.Unsupported
			}
			return storage.Exact
		})
	}
	plan := planned(true)
	if plan.Residual != (storage.All{}) {
		plan = planned(false)
	}
	s.residual = plan.Residual
	if plan.Prefilter != (storage.All{}) {
		s.holds = join(plan.Prefilter, leaves)
	}
	for _, d := range s.dimensions {
		s.need(d.columns...)
		if d.property != "" {
			s.properties = append(s.properties, d.property)
		}
	}
	if !s.scores {
		s.need(partColumns(s.parts)...)
	}
}

// rowsBetweenChecks is the number of rows between two looks at the context.
const rowsBetweenChecks = 16 << 10

// chunk calls each with the rows of a chunk that have keys behind after and up to to, until
// each wants no more.
func (s *scan) chunk(c *Chunk, after, to int64) {
	from, to := max(after+1, c.low), min(to, c.high)
	if s.ended() || from > to || len(c.n) == 0 {
		return
	}
	var chosen *keySet
	if s.residual != (storage.All{}) {
		if chosen, s.err = s.chosenOf(c, from, to); s.err != nil || len(chosen.keys) == 0 {
			return
		}
	}
	if s.scores {
		s.chunkScores(c, from, to, chosen)
		return
	}
	r := storage.Row{Groups: make([]int, len(s.dimensions))}
	first := 0
	if c.sorted {
		first, _ = slices.BinarySearch(c.n, from)
	}
	for i := first; i < len(c.n); i++ {
		if i%rowsBetweenChecks == 0 {
			if s.err = s.ctx.Err(); s.err != nil {
				return
			}
			runtime.Gosched() // traffic is not to wait for the 10 ms of a time slice
		}
		n := c.n[i]
		switch {
		case c.sorted && n > to:
			return
		case c.org[i] != s.org || n < from || n > to || !s.chooses(c, i, chosen):
			continue
		}
		c.read(&r, i, s.parts)
		if s.give(&r, c, i); s.ended() {
			return
		}
	}
}

// chooses tells whether the filter is true of a row.
func (s *scan) chooses(c *Chunk, row int, chosen *keySet) bool {
	return (s.holds == nil || s.holds(c, row)) && (chosen == nil || chosen.has(c.n[row]))
}

// give calls each with a row, after setting its groups and its time.
func (s *scan) give(r *storage.Row, c *Chunk, row int) {
	for j := range s.dimensions {
		if number := s.dimensions[j].number; number != nil {
			r.Groups[j] = number(c, row)
		}
	}
	r.CreatedAt = CreatedAt(c.n[row])
	if s.err = s.failed; s.err == nil {
		s.enough = !s.each(r)
	}
}

// chunkScores calls each with the scores of the rows of a chunk.
func (s *scan) chunkScores(c *Chunk, from, to int64, chosen *keySet) {
	rowOf := c.finder()
	scores := s.dimensions[0]
	r := storage.Row{Groups: make([]int, 1)}
	err := s.source.Scores(from, to, func(key int64, name uint32, value float64) bool {
		i := rowOf(key)
		if i < 0 || c.org[i] != s.org || !s.chooses(c, i, chosen) {
			return true
		}
		r.Groups[0], r.Score = scores.texts.number(name), value
		s.give(&r, c, i)
		return !s.ended()
	})
	if s.err == nil {
		s.err = err
	}
}
