package columnar

import (
	"runtime"
	"slices"
	"unsafe"

	"github.com/weirhq/weir/storage"
)

// scan is the share that a goroutine has of a call of Scan.
type scan struct {
	*sharedScan
	// prefilter is the part of the filter that the columns decide, nil if there is no such part.
	// residual is the part that the source decides.
	prefilter selection
	residual  storage.Filter
	// ranges are what leaves are true of, for leaves that compare with bounds.
	ranges map[*storage.Leaf][]columnRange
	// needs says what is read of files.
	needs       needs
	reader      *fileReader
	scoreReader scoreReader
	// all are the keys of all requests between from and to that match the residual, nil until a
	// chunk needs them.
	all *keySet
	// every is true if each row of the chunk is of the organisation and between from and to.
	every bool
	// selected are the rows that are chosen from, and batch is what is added to sums.
	selected []int32
	batch    storage.RowBatch
	// sums are of the part that is scanned, nil between parts.
	sums storage.PartialSums
	// unused are former sums, whose memory is used again.
	unused storage.PartialSums
	// numberers number the values of the dimensions in tables, anew for each part.
	numberers []numberer
	tables    []groupTable
	// places are those of the groups that are told apart, by the numbers in tables.
	places [][]int
	// full is true once sums wants no more rows of the part.
	full bool
	// asked is true once the source has been asked for something of the part that a file does not have.
	asked bool
	// failed is the error of what reads the source.
	failed error
}

// newScan plans a share of a scan.
func (x *sharedScan) newScan() *scan {
	s := &scan{sharedScan: x, ranges: make(map[*storage.Leaf][]columnRange), tables: make([]groupTable, len(x.dimensions)), places: make([][]int, len(x.dimensions))}
	s.scoreReader.scan = s
	s.reader, _ = x.turn.engine.readers.Get().(*fileReader)
	if s.reader == nil {
		s.reader = new(fileReader)
	}
	s.plan(x.Filter)
	for _, d := range x.dimensions {
		if d.begin != nil {
			s.numberers = append(s.numberers, d.begin(s))
		}
	}
	return s
}

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
		s.need(partColumns(s.Parts)...)
	}
}

// scanFile scans the requests of a file between two keys, and the requests that have changed
// since the file was written.
func (s *scan) scanFile(known Region, after, to int64) {
	changed, err := s.source.Changed(after, to)
	if err != nil {
		s.fail(err)
		return
	}
	memory := s.turn.engine.memory
	// What the file adds up to is remembered, unless that depends on more than the file.
	memorable := s.question != (question{}) && !s.large.Load() && s.residual == (storage.All{}) && len(changed) == 0 && after == known.After && to == known.Last
	if memorable {
		if p, ok := memory.get(known.File, s.question).(*part); ok && p.after == after {
			s.merge(p)
			return
		}
		s.finish()
	}
	c, err := s.reader.read(s.turn.engine, known, &s.needs)
	if err != nil {
		s.source.Damaged(known)
		s.scanGap(after, to)
		return
	}
	for _, n := range changed {
		c.delete(n)
	}
	s.addChunk(c, after, to)
	if len(changed) > 0 {
		var now Chunk
		if err := s.source.Keys(changed, func() *Chunk { return &now }); err != nil {
			s.fail(err)
			return
		}
		s.addChunk(&now, after, to)
	}
	if !memorable || s.sums == nil {
		s.finishLarge()
		return
	}
	full := s.full
	p := s.finish()
	switch p.after = after; {
	case s.asked || full || s.ended.Load():
	case !memory.put(known.File, s.question, p, p.size):
		s.large.Store(true)
	default:
		s.unused = nil
	}
}

// scanGap scans requests between two keys that are in no file. It reads them from the source.
func (s *scan) scanGap(after, to int64) {
	limit := s.turn.engine.ChunkRows
	for !s.ended.Load() && after < to {
		var c Chunk
		rows, err := s.source.Between(after, to, limit, func() *Chunk { return &c })
		if err != nil {
			s.fail(err)
			return
		}
		s.addChunk(&c, after, to)
		if s.finishLarge(); rows < limit {
			return
		}
		after = c.high
	}
}

// scanTail scans the requests of the tail between two keys.
func (s *scan) scanTail(after, to int64) {
	for i := range s.tail.chunks {
		s.addChunk(&s.tail.chunks[i], after, to)
		s.finishLarge()
	}
}

// begin begins a part, unless one has begun.
func (s *scan) begin() {
	if s.sums != nil {
		return
	}
	s.sums, s.unused, s.full, s.asked = s.Begin(s.unused), nil, false, false
	for i := range s.tables {
		s.tables[i].clear()
		s.places[i] = s.places[i][:0]
	}
}

// largePart is the size of a part in bytes that is finished before it grows: each goroutine has one.
const largePart = 4 << 20

// finishLarge finishes a part that is large, or wants no more: others are finished with the last file of
// the scan, since to merge parts takes time.
func (s *scan) finishLarge() {
	if s.sums == nil {
		return
	}
	size := s.sums.Size()
	for i := range s.tables {
		size += groupBytes * s.tables[i].len
	}
	if s.full || size > largePart {
		s.finish()
	}
}

// finish merges the sums of a part, if one has begun, and returns it.
func (s *scan) finish() *part {
	if s.sums == nil {
		return nil
	}
	p := &part{sums: s.sums, size: int(unsafe.Sizeof(part{})) + s.sums.End()}
	s.sums, s.unused = nil, s.sums
	if s.Among == nil {
		p.values = make([][]uint64, len(s.tables))
		for i := range s.tables {
			p.values[i] = s.tables[i].list()
			p.size += int(unsafe.Sizeof(p.values[i])) + 8*cap(p.values[i])
		}
	}
	s.merge(p)
	return p
}

// addChunk adds up the rows of a chunk whose keys are above after and not above to, until the part is
// full.
func (s *scan) addChunk(c *Chunk, after, to int64) {
	from, to := max(after+1, c.low), min(to, c.high)
	if s.full || s.ended.Load() || from > to || len(c.n) == 0 {
		return
	}
	s.begin()
	var chosen *keySet
	if s.residual != (storage.All{}) {
		var err error
		if chosen, err = s.chosenOf(c, from, to); err != nil {
			s.fail(err)
			return
		}
		if len(chosen.keys) == 0 {
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
		if s.addRows(c, rows); s.full || s.ended.Load() {
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

// addRows adds up rows, after setting their groups.
func (s *scan) addRows(c *Chunk, rows []int32) {
	if err := s.ctx.Err(); err != nil {
		s.fail(err)
		return
	}
	runtime.Gosched() // calls of clients must not wait for a time slice of 10 ms
	if len(rows) == 0 {
		return
	}
	b := &s.batch
	b.Groups = slices.Grow(b.Groups[:0], len(s.dimensions))[:len(s.dimensions)]
	for i, number := range s.numberers {
		rows, b.Groups[i] = number(c, rows, &s.tables[i], slices.Grow(b.Groups[i][:0], len(rows))[:len(rows)])
		s.placeAmong(i, b.Groups[i])
	}
	c.read(b, rows, s.Parts)
	if s.failed != nil {
		s.fail(s.failed)
	} else if len(rows) > 0 {
		s.full = !s.sums.Add(b)
	}
}

// placeAmong replaces the groups of a dimension by their places among those that are told apart.
func (s *scan) placeAmong(dimension int, groups []int) {
	if s.Among == nil {
		return
	}
	t, places := &s.tables[dimension], s.places[dimension]
	for len(places) <= t.len {
		place, ok := s.noValue[dimension], true
		if len(places) > 0 {
			place, ok = s.placeOf[dimension][*t.values.At(len(places))]
		}
		if !ok {
			place = len(s.Among[dimension])
		}
		places = append(places, place)
	}
	for i, group := range groups {
		groups[i] = places[group]
	}
	s.places[dimension] = places
}
