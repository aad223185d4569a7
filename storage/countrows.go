package storage

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unsafe"

	"github.com/weirhq/weir/plugins"
)

// count is how many rows a group has, the total by which the group is put into order, and
// the times of the first and the last row.
type count struct {
	rows        int64
	total       plugins.Count
	first, last Timestamp
}

// countGroups counts the rows of each group of each set, which takes less memory than
// all totals.
func countGroups(q *GroupQuery, rows Rows) ([][]count, error) {
	sets := make([][]count, max(1, len(q.By)))
	if !q.Apart {
		sets = sets[:1]
	}
	err := scanGroups(q, rows, &Scan{Filter: q.Filter, Window: q.Window}, q.Top.GroupSort().Key, func(set, group int, c *count) {
		sets[set] = grown(sets[set], group+1)
		sets[set][group].merge(c)
	})
	if durations := q.Top.GroupSort().Key.duration(); durations != nil && err == nil {
		err = q.setPercentiles(rows, sets, durations)
	}
	return sets, err
}

// requestCounts is the total of a scan that wants no total.
const requestCounts = totalRequests

// scanGroups calls each with what rows of each group count. total is the total of the counts. A group
// comes once for each part of the store that has rows of the group.
func scanGroups(q *GroupQuery, rows Rows, s *Scan, total TotalKey, each func(set, group int, c *count)) error {
	var value func() func(*RowBatch, int) plugins.Count
	s.Parts, value = q.rowTotal(total)
	s.Name = fmt.Sprint("counts ", q.Apart, q.Known, q.CountOnly, " of ", total)
	s.Begin = func(unused PartialSums) PartialSums {
		p, ok := unused.(*partialCounts)
		if !ok {
			p = new(partialCounts)
		}
		p.query, p.value = q, value()
		for set := range p.sets {
			p.sets[set] = p.sets[set][:0]
		}
		return p
	}
	s.Merge = func(sums PartialSums, groups [][]int) bool {
		for set, counts := range sums.(*partialCounts).sets {
			for number := range counts {
				switch c := &counts[number]; {
				case c.rows == 0:
				case len(q.By) == 0:
					each(set, 0, c)
				default:
					each(set, groups[set][number], c)
				}
			}
		}
		return true
	}
	return rows.Scan(s)
}

// partialCounts are the counts of rows of a part of the store, by set and group.
type partialCounts struct {
	query *GroupQuery
	// value is what a row adds to the total.
	value func(b *RowBatch, i int) plugins.Count
	sets  [][]count
}

// Add implements PartialSums.
func (p *partialCounts) Add(b *RowBatch) bool {
	p.query.eachGroup(b, func(set int, groups []int) {
		p.sets = grown(p.sets, set+1)
		counts := grown(p.sets[set], slices.Max(groups)+1)
		for i, group := range groups {
			if group >= 0 {
				at := b.CreatedAt[i]
				counts[group].merge(&count{1, p.value(b, i), at, at})
			}
		}
		p.sets[set] = counts
	})
	return true
}

// Size implements PartialSums.
func (p *partialCounts) Size() int {
	size := 0
	for _, counts := range p.sets {
		size += len(counts) * int(unsafe.Sizeof(count{}))
	}
	return size
}

// End implements PartialSums.
func (p *partialCounts) End() int {
	p.query, p.value = nil, nil // they may be kept
	size := int(unsafe.Sizeof(*p)) + cap(p.sets)*int(unsafe.Sizeof([]count{}))
	for _, counts := range p.sets {
		size += cap(counts) * int(unsafe.Sizeof(count{}))
	}
	return size
}

func (c *count) merge(o *count) {
	if c.rows == 0 {
		c.first, c.last = o.first, o.last
	}
	c.rows, c.total = c.rows+o.rows, c.total.Plus(o.total)
	c.first, c.last = min(c.first, o.first), max(c.last, o.last)
}

// setPercentiles replaces the totals by percentiles of a duration. It makes several scans if the
// durations of all groups do not fit into memory at once.
func (q *GroupQuery) setPercentiles(rows Rows, sets [][]count, durations func(*RowBatch) []plugins.Duration) error {
	limit, _ := rows.Limits()
	for from, behind := 0, true; behind; from += limit {
		behind = false
		distributions := make([]Pages[distribution], len(sets))
		err := rows.Scan(&Scan{
			Filter: q.Filter, Window: q.Window, Parts: DetailParts,
			Begin: func(PartialSums) PartialSums { return &partialDurations{query: q, durations: durations} },
			Merge: func(sums PartialSums, groups [][]int) bool {
				for set, part := range sums.(*partialDurations).sets {
					for number := range part {
						group := 0
						if len(q.By) > 0 {
							group = groups[set][number]
						}
						if group >= from+limit {
							behind = true
						} else if group >= from {
							distributions[set].At(group - from).merge(&part[number])
						}
					}
				}
				return true
			},
		})
		if err != nil {
			return err
		}
		for set, counts := range sets {
			for group := from; group < min(from+limit, len(counts)); group++ {
				p := distributions[set].At(group - from).percentiles()
				counts[group].total = q.Top.total(nil, &Details{Latency: p, TimeToFirstToken: p})
			}
		}
	}
	return nil
}

// partialDurations are the durations of a part of the store, by set and group.
type partialDurations struct {
	query     *GroupQuery
	durations func(*RowBatch) []plugins.Duration
	sets      [][]distribution
	values    int // about how many bytes the durations take, until End
}

// Add implements PartialSums.
func (p *partialDurations) Add(b *RowBatch) bool {
	durations := p.durations(b)
	p.query.eachGroup(b, func(set int, groups []int) {
		p.values += b.Len * valueBytes
		p.sets = grown(p.sets, set+1)
		p.sets[set] = grown(p.sets[set], slices.Max(groups)+1)
		for i, group := range groups {
			if len(durations) > 0 && group >= 0 && !b.Attempt[i] && durations[i].Valid {
				p.sets[set][group].add(durations[i].N)
			}
		}
	})
	return true
}

// Size implements PartialSums.
func (p *partialDurations) Size() int {
	size := p.values
	for _, distributions := range p.sets {
		size += len(distributions) * int(unsafe.Sizeof(distribution{}))
	}
	return size
}

// End implements PartialSums.
func (p *partialDurations) End() (size int) {
	for _, distributions := range p.sets {
		for i := range distributions {
			size += distributions[i].compact()
		}
	}
	return size
}

// eachGroup calls each with the groups of the rows of a batch in each set, -1 for rows that are left
// out.
func (q *GroupQuery) eachGroup(b *RowBatch, each func(set int, groups []int)) {
	sets := 1
	if q.Apart {
		sets = len(q.By)
	}
	groups := make([]int, b.Len)
	for set := range sets {
		if len(q.By) > 0 {
			copy(groups, b.Groups[set])
		}
		if q.Known {
			for i, group := range b.Groups[0] {
				if group == 0 {
					groups[i] = -1
				}
			}
		}
		each(set, groups)
	}
}

// rowTotal returns the parts of rows that add to a total, and a function that makes a function that
// tells what a row adds.
func (q *GroupQuery) rowTotal(total TotalKey) (RowParts, func() func(b *RowBatch, i int) plugins.Count) {
	switch total {
	case totalRequests:
		return CountParts, func() func(*RowBatch, int) plugins.Count {
			return func(b *RowBatch, i int) plugins.Count {
				if b.Attempt[i] && !q.CountOnly {
					return plugins.Known(0)
				}
				return plugins.Known(1)
			}
		}
	case totalCost:
		return CostParts, func() func(*RowBatch, int) plugins.Count {
			return func(b *RowBatch, i int) plugins.Count { return unitless(b.Cost[i]) }
		}
	}
	return DetailParts, func() func(*RowBatch, int) plugins.Count {
		c, d := new(Counts), new(Details)
		return func(b *RowBatch, i int) plugins.Count {
			*c, *d = Counts{}, Details{}
			c.add(b, i)
			d.add(b, i)
			return groupTotals[total](c, d)
		}
	}
}

// largestGroups are the groups that a query with LargestGroups answers.
type largestGroups struct {
	groups []int
	// places has the index in groups of each group, len(groups) for all other groups.
	// others counts the other groups.
	places []int
	others int
}

// largest finds the largest groups of a set.
func (q *GroupQuery) largest(rows Rows, set int, counts []count) *largestGroups {
	var groups []int
	for group, c := range counts {
		if c.rows > 0 {
			groups = append(groups, group)
		}
	}
	all := len(groups)
	order := func(a, b int) int { return q.Top.compare(counts[a].total, counts[b].total) }
	slices.SortFunc(groups, CancellableOrder(NewCancelCheck(rows.Err), order))
	groups = q.groupsAfter(rows, set, groups, counts)
	top := min(q.Top.Count, len(groups))
	l := &largestGroups{groups: groups[:top], places: slices.Repeat([]int{top}, len(counts)), others: all - top}
	if len(q.By) > 0 && 0 < top && top < len(groups) {
		last := groups[top-1]
		above := slices.IndexFunc(groups, func(group int) bool { return order(group, last) == 0 })
		equal := groups[above:]
		if others := slices.IndexFunc(equal, func(group int) bool { return order(group, last) != 0 }); others >= 0 {
			equal = equal[:others]
		}
		l.groups = append(groups[:above], leastByKey(rows, set, equal, top-above)...)
	}
	for i, group := range l.groups {
		l.places[group] = i
	}
	return l
}

// groupsAfter returns those of the groups, which are in order, that come after AfterTotal.
func (q *GroupQuery) groupsAfter(rows Rows, set int, groups []int, counts []count) []int {
	after, _, ok := q.AfterTotal(set)
	if !ok {
		return groups
	}
	at := func(order int) int { // the first group that compares at least order with the place
		return sort.Search(len(groups), func(i int) bool { return q.Top.compare(counts[groups[i]].total, after) >= order })
	}
	equal, behind := groups[at(0):at(1)], groups[at(1):]
	var remaining []int
	for block := range slices.Chunk(equal, keysAtOnce) {
		for i, key := range rows.Keys(set, block) {
			if q.isAfter(set, after, key.ID) {
				remaining = append(remaining, block[i])
			}
		}
	}
	return append(remaining, behind...)
}

// leastByKey returns the n groups whose keys come first.
func leastByKey(rows Rows, set int, groups []int, n int) []int {
	type keyed struct {
		Key
		group int
	}
	var least []keyed
	for block := range slices.Chunk(groups, keysAtOnce) {
		for i, key := range rows.Keys(set, block) {
			least = append(least, keyed{key, block[i]})
		}
		slices.SortFunc(least, CancellableOrder(NewCancelCheck(rows.Err), func(x, y keyed) int {
			return cmp.Or(strings.Compare(x.ID, y.ID), strings.Compare(x.Name, y.Name), strings.Compare(x.Tag, y.Tag))
		}))
		least = least[:min(n, len(least))]
	}
	found := make([]int, len(least))
	for i, k := range least {
		found[i] = k.group
	}
	return found
}

// countRows answers a query that asks for nothing but counts.
func countRows(q *GroupQuery, rows Rows, each func(*GroupTotals) error) error {
	sets, err := countGroups(q, rows)
	if err != nil {
		return err
	}
	g := &rowGrouper{query: q, rows: rows, sets: make([]rowSet, len(sets))}
	for i := range g.sets {
		s := &g.sets[i]
		if q.Top.By == LargestGroups {
			s.largest = q.largest(rows, i, sets[i])
		}
		for group, c := range sets[i] {
			if c.rows == 0 {
				continue
			}
			if s.largest != nil {
				group = s.largest.places[group]
			}
			s.sums.At(group).merge(&Totals{Counts: Counts{Requests: c.total.N}, First: c.first, Last: c.last})
		}
		if err := g.answer(i, each); err != nil {
			return err
		}
	}
	return nil
}
