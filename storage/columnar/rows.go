package columnar

import (
	"cmp"
	"context"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/weirhq/weir/storage"
)

// rows are storage.Rows that are read from files of columns and from the tail in memory, and
// from the source where neither has them.
type rows struct {
	ctx    context.Context
	source Source
	org    uint32 // 0 if there is none
	// dimensions are what the rows are grouped by. scores is true if the rows are scores.
	dimensions []dimension
	scores     bool
	tail       *Tail // nil if it is too large
	// sessions are the sessions whose requests are scanned, all in window; nil for all requests.
	sessions map[Session]bool
	window   storage.Window
	// from and to are the keys of requests between which a scan looks.
	from, to int64
	turn     *Turn
	// reader reads the files of all scans: a query with more groups than fit in memory scans
	// the files several times.
	reader fileReader
	// failed is the error of a dimension or a selection that reads the source.
	failed error
}

// Keys are the texts of groups.
func (x *rows) Keys(dimension int, groups []int) []storage.Key {
	return x.dimensions[dimension].keys(groups)
}

// Limits returns the limits of the engine: the groups and the cells that fit in memory at once.
func (x *rows) Limits() (groups, cells int) {
	return x.turn.engine.Limits.Totals, x.turn.engine.Limits.Cells
}

// Err is the error of the query's context.
func (x *rows) Err() error { return x.ctx.Err() }

// Scan calls each with the rows that match a filter. The source decides the part of the filter
// that the columns cannot.
func (x *rows) Scan(f storage.Filter, w storage.Window, parts storage.RowParts, each func(*storage.RowBatch) bool) error {
	if x.sessions != nil {
		w.From, w.To = max(w.From, x.window.From), min(w.To, x.window.To)
	}
	x.from, x.to = FirstKey(w.From), LastKey(w.To)
	s := scan{rows: x, each: each, parts: parts, scoreReader: scoreReader{x: x}, ranges: make(map[*storage.Leaf][]columnRange)}
	s.plan(f)
	if x.org == 0 {
		return nil
	}
	regions, err := x.source.Regions(s.from, s.to)
	if err != nil {
		return err
	}
	after := s.from - 1 // the last key that has been scanned
	for _, region := range regions {
		s.gap(after, min(region.After, s.to))
		s.file(region, max(after, region.After), min(region.Last, s.to))
		after = region.Last
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
	c, err := s.reader.read(filepath.Join(s.turn.engine.Dir, known.File), known, &s.needs)
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

// gap scans requests between two keys that are in no file. It reads them from the source.
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

// scan is one call of Scan.
type scan struct {
	*rows
	each  func(*storage.RowBatch) bool
	parts storage.RowParts
	// prefilter is the part of the filter that the columns decide, nil if there is no such part.
	// residual is the part that the source decides.
	prefilter selection
	residual  storage.Filter
	// ranges are what leaves are true of, for leaves that compare with bounds.
	ranges map[*storage.Leaf][]columnRange
	// needs says what is read of files.
	needs       needs
	scoreReader scoreReader
	// all are the keys of all requests between from and to that match the residual, nil until a
	// chunk needs them.
	all *keySet
	// every is true if each row of the chunk is of the organisation and between from and to.
	every bool
	// selected are the rows that are chosen from, and batch is what each is called with.
	selected []int32
	batch    storage.RowBatch
	// stopped is true once each has returned false. err is the error that ended the scan.
	stopped bool
	err     error
}

func (s *scan) ended() bool { return s.stopped || s.err != nil }

// need makes the scan read columns.
func (s *scan) need(columns ...int) {
	for _, i := range columns {
		s.needs.columns[i] = true
	}
}

// plan splits the filter. The source decides what columns cannot decide alone, and finds
// requests by their properties.
func (s *scan) plan(f storage.Filter) {
	cancel := storage.NewCancelCheck(s.ctx.Err)
	leaves := make(map[*storage.Leaf]selection)
	planned := func(properties bool) storage.Plan {
		return storage.PlanFilter(f, func(l *storage.Leaf) storage.Support {
			if isProperty(l) && !properties {
				return storage.Unsupported
			}
			matches, ok := leaves[l]
			if !ok {
				matches = s.leaf(l, cancel)
				leaves[l] = matches
			}
			if matches == nil {
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
		s.prefilter = join(plan.Prefilter, leaves)
	}
	for part := range storage.Conjuncts(plan.Prefilter) {
		if l, ok := part.(*storage.Leaf); ok {
			s.needs.ranges = append(s.needs.ranges, s.ranges[l]...)
		}
	}
	for _, d := range s.dimensions {
		s.need(d.columns...)
		if d.property != "" {
			s.needs.properties = append(s.needs.properties, d.property)
		}
	}
	if s.needs.allScores = s.needs.allScores || s.scores; !s.scores {
		s.need(partColumns(s.parts)...)
	}
}

// chunk calls each with the rows of a chunk whose keys are above after and not above to, until
// each returns false.
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
	// Most chunks have requests of one organisation, all in the window.
	s.every = from == c.low && to == c.high && !slices.ContainsFunc(c.org, func(org uint32) bool { return org != s.org })
	if s.scores {
		s.chunkScores(c, from, to, chosen)
		return
	}
	first, last := 0, len(c.n)
	if c.sorted {
		first, _ = slices.BinarySearch(c.n, from)
	}
	for ; first < last && !(c.sorted && c.n[first] > to); first += storage.BatchRows {
		s.selected = s.selected[:0]
		for row := first; row < min(first+storage.BatchRows, last); row++ {
			s.selected = append(s.selected, int32(row))
		}
		rows := s.choose(c, s.selected, from, to, chosen)
		if s.give(c, rows); s.ended() {
			return
		}
	}
}

// choose keeps the rows with keys from a key to another of which the filter is true.
func (s *scan) choose(c *Chunk, rows []int32, from, to int64, chosen *keySet) []int32 {
	kept := rows
	if !s.every {
		kept = rows[:0]
		for _, row := range rows {
			if n := c.n[row]; c.org[row] == s.org && n >= from && n <= to {
				kept = append(kept, row)
			}
		}
	}
	if s.prefilter != nil {
		kept = s.prefilter(c, kept)
	}
	if x := s.sessions; x != nil {
		kept = keep(func(c *Chunk, row int) bool {
			return x[Session{c.at(sessionColumn, row), c.at(sessionNameColumn, row)}]
		})(c, kept)
	}
	if chosen != nil {
		kept = keep(func(c *Chunk, row int) bool { return chosen.has(c.n[row]) })(c, kept)
	}
	return kept
}

// give calls each with rows, after setting their groups.
func (s *scan) give(c *Chunk, rows []int32) {
	if s.err = s.ctx.Err(); s.err != nil {
		return
	}
	runtime.Gosched() // calls of clients must not wait for a time slice of 10 ms
	if len(rows) == 0 {
		return
	}
	b := &s.batch
	b.Groups = slices.Grow(b.Groups[:0], len(s.dimensions))[:len(s.dimensions)]
	for j := range s.dimensions {
		d := &s.dimensions[j]
		if d.expand != nil {
			rows, b.Groups[j] = d.expand(c, rows, b.Groups[j][:0])
		} else if d.numbers != nil {
			b.Groups[j] = slices.Grow(b.Groups[j][:0], len(rows))[:len(rows)]
			d.numbers(c, rows, b.Groups[j])
		}
	}
	c.read(b, rows, s.parts)
	if s.err = s.failed; s.err == nil {
		s.stopped = !s.each(b)
	}
}
