package columnar

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weirhq/weir/internal/lowpriority"
	"github.com/weirhq/weir/storage"
)

// sharedScan is a call of Scan: parts of the store, which goroutines add up.
type sharedScan struct {
	*rows
	*storage.Scan
	// from and to are the keys of requests between which the scan looks.
	from, to int64
	// question tells what is added up of a file from all else that is, zero if sums must not be
	// remembered.
	question question
	// placeOf and noValue have the places in Among of values, and of rows without a value.
	placeOf []map[uint64]int
	noValue []int
	// parts are what remains to be scanned: parts from next on.
	parts []func(*scan)
	next  atomic.Int64
	// large is true once a file's sums are too large to be remembered.
	large atomic.Bool
	// ended is true once no more is to be scanned.
	ended atomic.Bool

	mu sync.Mutex // guards err and the groups of dimensions, and is held while Merge is called
	// err is the error that ended the scan.
	err error
	// groups are for Merge.
	groups [][]int
}

// part is what the rows of a part of the store add up to.
type part struct {
	sums storage.PartialSums
	// values are, for each dimension, what the numbers of groups stand for, from 1 on; nil if the
	// scan says which groups are told apart.
	values [][]uint64
	// after is the key after which the rows of the file begin: deletion of old requests raises it.
	after int64
	// size is about how many bytes the part takes.
	size int
}

// Scan adds up the rows that match a filter. The source decides the part of the filter that the
// columns cannot.
func (x *rows) Scan(spec *storage.Scan) error {
	w := spec.Window
	if x.sessions != nil {
		w.From, w.To = max(w.From, x.window.From), min(w.To, x.window.To)
	}
	s := &sharedScan{rows: x, Scan: spec, from: FirstKey(w.From), to: LastKey(w.To), groups: make([][]int, len(x.dimensions))}
	s.tellApart()
	s.ask()
	if x.org == 0 {
		return nil
	}
	regions, err := x.source.Regions(s.from, s.to)
	if err != nil {
		return err
	}
	after := s.from - 1 // the last key that has a part
	gap := func(to int64) {
		if after := after; after < to {
			s.parts = append(s.parts, func(s *scan) { s.scanGap(after, to) })
		}
	}
	for _, region := range regions {
		gap(min(region.After, s.to))
		from, to := max(after, region.After), min(region.Last, s.to)
		if from < to {
			s.parts = append(s.parts, func(s *scan) { s.scanFile(region, from, to) })
		}
		after = region.Last
	}
	if x.tail == nil {
		gap(s.to)
	} else {
		gap(min(x.tail.after, s.to))
		after = max(after, x.tail.after)
		s.parts = append(s.parts, func(s *scan) { s.scanTail(after, s.to) })
	}
	s.share()
	return s.err
}

// tellApart notes the places of the groups that are told apart.
func (s *sharedScan) tellApart() {
	for dimension, groups := range s.Among {
		placeOf, noValue := make(map[uint64]int), len(groups)
		for place, group := range groups {
			if group == 0 {
				noValue = place
			} else {
				placeOf[*s.dimensions[dimension].groups.values.At(group)] = place
			}
		}
		s.placeOf, s.noValue = append(s.placeOf, placeOf), append(s.noValue, noValue)
	}
}

// ask sets the question, if the sums of a file depend on nothing else.
func (s *sharedScan) ask() {
	if s.Name == "" || s.sessions != nil {
		return
	}
	text := fmt.Appendf(nil, "%s, parts %d, organisation %d, filter ", s.Name, s.Parts, s.org)
	text = storage.AppendJSON(text, s.Filter)
	for l := range storage.Leaves(s.Filter) { // of which JSON leaves out bytes that are not UTF-8
		text = fmt.Appendf(text, " %q %q", l.Key, l.Text)
	}
	for i, d := range s.dimensions {
		if d.name == "" {
			return
		}
		text = fmt.Appendf(text, ", by %q", d.name)
		if s.Among != nil {
			text = fmt.Appendf(text, " %d of %d %v", s.noValue[i], len(s.Among[i]), s.placeOf[i])
		}
	}
	s.question = sha256.Sum256(text)
}

// share scans the parts, with the help of further goroutines if processors are free.
func (s *sharedScan) share() {
	engine := s.turn.engine
	for range len(s.parts) - 1 {
		select {
		case engine.helpers <- struct{}{}:
			wait := lowpriority.Start(func() {
				defer func() { <-engine.helpers }()
				s.scanParts()
			})
			defer wait()
			continue
		default:
		}
		break
	}
	finished := false
	defer func() {
		if !finished { // by a panic, after which others must not go on
			s.ended.Store(true)
		}
	}()
	s.scanParts()
	finished = true
}

// scanParts scans parts until none remains.
func (s *sharedScan) scanParts() {
	own := s.newScan()
	defer func() {
		clear(own.reader.properties)
		s.turn.engine.readers.Put(own.reader)
	}()
	for !s.ended.Load() {
		next := int(s.next.Add(1)) - 1
		if next >= len(s.parts) {
			break
		}
		s.parts[next](own)
	}
	own.finish()
	if own.failed != nil {
		s.fail(own.failed)
	}
}

// fail ends the scan with an error.
func (s *sharedScan) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(s.err, err)
	s.ended.Store(true)
}

// merge adds a part to the whole.
func (s *sharedScan) merge(p *part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended.Load() {
		return
	}
	for i, values := range p.values {
		all := &s.dimensions[i].groups
		before := all.len
		s.groups[i] = append(s.groups[i][:0], 0)
		for _, v := range values {
			s.groups[i] = append(s.groups[i], all.number(v))
		}
		if all.len == before {
			continue
		}
		if err := s.turn.grow(all.len); err != nil {
			s.err = cmp.Or(s.err, err)
			s.ended.Store(true)
			return
		}
	}
	if !s.Merge(p.sums, s.groups) {
		s.ended.Store(true)
	}
}
