package storage

import (
	"slices"
	"unsafe"
)

// partialTotals are what the rows of a part of the store add up to, a set for each dimension.
type partialTotals struct {
	query *GroupQuery
	sets  []partialSet
	// first is the first set that rows are added to: 0 or 1. If it is 1, set 0 has all rows in a
	// single group, and is made of the groups of set 1.
	first int
	// grid numbers the buckets.
	grid Buckets
	// span is the time of the rows.
	span Window
	// enough is true once any group will do, and there is one.
	enough bool
	// values are about how many bytes the values take that percentiles are of, until End.
	values int
	// groups, totals and buckets are of the rows of a batch.
	groups  []int
	totals  []*Totals
	buckets []int32
}

// partialSet has what the rows of one dimension add up to, by their groups.
type partialSet struct {
	totals  []Totals
	days    activeDays
	cells   chains[Counts]
	details chains[detailSums]
}

// newPartialTotals returns the totals of no rows, in the memory of unused ones.
func newPartialTotals(q *GroupQuery, grid Buckets, unused PartialSums) *partialTotals {
	p, ok := unused.(*partialTotals)
	if !ok {
		p = new(partialTotals)
	}
	p.query, p.grid, p.span, p.enough, p.values = q, grid, never, false, 0
	if q.Apart {
		p.sets = grown(p.sets, len(q.By))
	} else {
		p.sets = grown(p.sets, 1)
	}
	if q.Apart && len(q.By) > 1 && q.By[0] == (Dimension{}) {
		p.first = 1
	}
	for i := range p.sets {
		s := &p.sets[i]
		s.totals = s.totals[:0]
		s.days.sets.clear()
		s.cells.clear()
		s.details.clear()
	}
	return p
}

// Add adds the rows of a batch to their groups.
func (p *partialTotals) Add(b *RowBatch) (more bool) {
	q := p.query
	if q.Buckets.Len > 0 {
		p.buckets = p.grid.indexes(b.CreatedAt, p.buckets[:0])
	} else {
		p.buckets = slices.Grow(p.buckets[:0], b.Len)[:b.Len]
		clear(p.buckets)
	}
	for _, at := range b.CreatedAt {
		p.span = p.span.include(at)
	}
	for set := p.first; set < len(p.sets); set++ {
		p.groups = slices.Grow(p.groups[:0], b.Len)[:b.Len]
		if len(q.By) == 0 {
			clear(p.groups)
		} else {
			copy(p.groups, b.Groups[set])
		}
		if q.Known {
			for i, group := range b.Groups[0] {
				if group == 0 {
					p.groups[i] = -1
				}
			}
		}
		p.addTo(&p.sets[set], b)
	}
	if q.Details {
		p.values += (len(p.sets) - p.first) * b.Len * 2 * valueBytes // two durations of each row
	}
	added := func(t *Totals) bool { return t != nil }
	p.enough = q.Top.Count > 0 && q.Top.By == AnyGroups && slices.ContainsFunc(p.totals, added)
	return !p.enough
}

// addTo adds the rows of a batch to their groups of a set, which are less than 0 for rows that are
// left out.
func (p *partialTotals) addTo(s *partialSet, b *RowBatch) {
	q := p.query
	s.totals = grown(s.totals, slices.Max(p.groups)+1)
	p.totals = slices.Grow(p.totals[:0], b.Len)[:b.Len]
	for i, group := range p.groups {
		if p.totals[i] = nil; group < 0 {
			continue
		}
		p.totals[i] = &s.totals[group]
		if q.ActiveDays && !b.Attempt[i] {
			s.days.add(group, q.Zone.day(b.CreatedAt[i]))
		}
		if q.Buckets.Len > 0 {
			s.cells.at(group, p.buckets[i]).add(b, i)
		}
		if q.Details {
			s.details.at(group, p.buckets[i]).add(b, i)
		}
	}
	addTotals(p.totals, b)
}

// Size implements PartialSums.
func (p *partialTotals) Size() int {
	size := p.values
	for i := range p.sets {
		s := &p.sets[i]
		size += len(s.totals)*int(unsafe.Sizeof(Totals{})) + s.days.sets.used() + s.cells.used() + s.details.used()
	}
	return size
}

// End implements PartialSums.
func (p *partialTotals) End() int {
	p.query, p.groups, p.totals, p.buckets = nil, nil, nil, nil // they may be kept
	size := int(unsafe.Sizeof(*p)) + cap(p.sets)*int(unsafe.Sizeof(partialSet{}))
	for i := range p.sets {
		s := &p.sets[i]
		size += cap(s.totals)*int(unsafe.Sizeof(Totals{})) + s.days.sets.size() + s.cells.size() + s.details.size()
		for i := range s.details.links {
			d := &s.details.links[i].value
			size += d.latencies.compact() + d.ttfts.compact()
		}
	}
	return size
}
