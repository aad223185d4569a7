package storage

import (
	"cmp"
	"fmt"
	"slices"
)

// GroupRows answers a query from rows that are grouped by its RowDimensions.
func GroupRows(q *GroupQuery, rows Rows, each func(*GroupTotals) error) error {
	switch by, _ := q.RowDimensions(); {
	case len(by) > 0 && by[0].Name == ByScore:
		return groupScores(q, rows, each)
	case q.CountOnly:
		return countRows(q, rows, each)
	}
	g := &rowGrouper{query: q, rows: rows, window: q.Window, sets: make([]rowSet, max(1, len(q.By)))}
	if !q.Apart {
		g.sets = g.sets[:1]
	}
	g.limit, g.mostCells = rows.Limits()
	for {
		if err := g.scan(); err != nil {
			return err
		}
		if err := g.any(); err != nil {
			return err
		}
		for i := range g.sets {
			if err := g.answer(i, each); err != nil {
				return err
			}
		}
		if g.later == never {
			return nil
		}
		g.from, g.window = g.from+g.limit, g.later
		g.mostCells -= len(g.sets[0].cells.links) // the answer may keep these cells
		g.sets[0].clear()
	}
}

// rowGrouper adds rows up.
type rowGrouper struct {
	query *GroupQuery
	rows  Rows
	sets  []rowSet
	// matched says, for each of the query's Any, which groups match.
	matched [][]bool
	// If there are too many groups, a scan adds up limit groups, beginning with the group
	// from. window contains the rows of these groups, later the rows of the groups after them.
	from, limit   int
	window, later Window
	// mostCells bounds the cells, in all scans together.
	mostCells int
}

// rowSet has what the rows of one dimension add up to.
type rowSet struct {
	largest *largestGroups // nil if all groups are wanted
	sums    byGroup
	days    activeDays
	cells   chains[Counts]
	// details are by bucket if the query has buckets, else under 0.
	details chains[detailSums]
}

// scan adds up what the query chooses.
func (g *rowGrouper) scan() error {
	q := g.query
	s := Scan{Filter: q.Filter, Window: g.window, Parts: TotalParts}
	if q.Details {
		s.Parts = DetailParts
	}
	if q.Top.By == LargestGroups {
		counts, err := countGroups(q, g.rows)
		if err != nil {
			return err
		}
		for i := range g.sets {
			g.sets[i].largest = q.largest(g.rows, i, counts[i])
			s.Among = append(s.Among, g.sets[i].largest.groups)
		}
	}
	grid, _ := q.Buckets.grid()
	days := ""
	if q.ActiveDays {
		days = q.Zone.name()
	}
	if q.Top.By != AnyGroups || q.Top.Count == 0 {
		s.Name = fmt.Sprint("totals ", q.Apart, q.Known, q.Details, " days ", days, " buckets ", grid.name())
	}
	s.Begin = func(unused PartialSums) PartialSums { return newPartialTotals(q, grid, unused) }
	g.later = never
	tooMany := false
	s.Merge = func(sums PartialSums, groups [][]int) bool {
		more := g.merge(sums, groups)
		tooMany = slices.ContainsFunc(g.sets, func(s rowSet) bool { return len(s.cells.links) > g.mostCells })
		return more && !tooMany
	}
	err := g.rows.Scan(&s)
	if err == nil && tooMany {
		err = ErrTooManyGroups
	}
	return err
}

// merge adds the totals of a part of the store.
func (g *rowGrouper) merge(sums PartialSums, groups [][]int) (more bool) {
	of, q := sums.(*partialTotals), g.query
	_, shift := q.Buckets.grid()
	for i := range g.sets {
		s, part := &g.sets[i], &of.sets[max(i, of.first)]
		for number := range part.totals {
			if part.totals[number].empty() {
				continue
			}
			group := number
			switch {
			case i < of.first:
				group = 0
			case s.largest != nil || len(q.By) == 0:
			case q.Apart:
				group = groups[i][number]
			default:
				if group = groups[i][number] - g.from; group >= g.limit {
					g.later = g.later.include(of.span.From).include(of.span.To)
				}
				if group < 0 || group >= g.limit {
					continue
				}
			}
			s.merge(group, part, number, shift)
		}
	}
	return !of.enough
}

// clear makes room for other groups.
func (s *rowSet) clear() {
	s.sums.clear()
	s.days.sets.clear()
	s.cells.clear()
	s.details.clear()
}

// merge adds what a part of the store has of a group, whose buckets have larger numbers by shift.
func (s *rowSet) merge(group int, part *partialSet, number int, shift int32) {
	s.sums.At(group).merge(&part.totals[number])
	for at, days := range part.days.sets.values(number) {
		*s.days.sets.at(group, int32(at)) |= *days
	}
	for bucket, counts := range part.cells.values(number) {
		s.cells.at(group, int32(bucket)-shift).merge(counts)
	}
	for bucket, details := range part.details.values(number) {
		s.details.at(group, int32(bucket)-shift).merge(details)
	}
}

// any finds out which groups match each of the query's Any.
func (g *rowGrouper) any() error {
	q := g.query
	g.matched = make([][]bool, len(q.Any))
	for at, f := range q.Any {
		err := scanGroups(q, g.rows, &Scan{Filter: And(q.Filter, f), Window: g.window}, requestCounts, func(_, group int, _ *count) {
			if group -= g.from; 0 <= group && group < g.limit {
				g.matched[at] = grown(g.matched[at], group+1)
				g.matched[at][group] = true
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// answer calls each with the groups of a set.
func (g *rowGrouper) answer(set int, each func(*GroupTotals) error) error {
	q, s := g.query, &g.sets[set]
	cancel := NewCancelCheck(g.rows.Err)
	t := &GroupTotals{Set: set, Any: make([]bool, len(q.Any))}
	if isTotal := len(q.By) == 0 || q.Apart && q.By[set] == (Dimension{}); isTotal && s.sums.At(0).empty() {
		t.Key = q.key(nil, Key{})
		t.Details = new(detailSums).answer(q)
		return each(t)
	}
	var chosen []int
	for group := range s.sums.all() {
		if cancel.over(groupSteps) {
			return cancel.ended
		}
		if q.Choose != nil {
			g.fill(t, group)
			if !q.Choose(t) {
				continue
			}
		}
		if chosen = append(chosen, group); len(chosen) == keysAtOnce {
			if err := g.answerGroups(t, chosen, each); err != nil {
				return err
			}
			chosen = chosen[:0]
		}
	}
	return g.answerGroups(t, chosen, each)
}

// keysAtOnce is how many keys are read together, and are in memory at the same time.
const keysAtOnce = 4 << 10

// answerGroups calls each with groups of a set.
func (g *rowGrouper) answerGroups(t *GroupTotals, groups []int, each func(*GroupTotals) error) error {
	s := &g.sets[t.Set]
	keys := g.keys(t.Set, groups)
	for i, group := range groups {
		g.fill(t, group)
		if s.largest != nil && group == len(s.largest.groups) {
			t.Key, t.Others = nil, s.largest.others
		} else {
			t.Key, t.Others = g.query.key(t.Key, keys[i]), 0
		}
		if err := each(t); err != nil {
			return err
		}
		t.Key = t.Key[:0]
	}
	return nil
}

// fill sets all but the key of a group.
func (g *rowGrouper) fill(t *GroupTotals, group int) {
	s := &g.sets[t.Set]
	t.Totals = *s.sums.At(group)
	if g.query.ActiveDays {
		t.ActiveDays = s.days.count(group)
	}
	for i, matched := range g.matched {
		t.Any[i] = group < len(matched) && matched[group]
	}
	s.answerCells(g.query, group, t)
}

// answerCells sets the cells and details of a group.
func (s *rowSet) answerCells(q *GroupQuery, group int, t *GroupTotals) {
	t.Cells = t.Cells[:0]
	for bucket, counts := range s.cells.values(group) {
		start, _ := q.Buckets.Bounds(bucket)
		t.Cells = append(t.Cells, Cell{Start: start, Counts: *counts})
	}
	if !q.Details {
		return
	}
	var all detailSums
	i := 0
	for _, d := range s.details.values(group) { // in the order of the cells
		all.merge(d)
		if q.Buckets.Len > 0 {
			t.Cells[i].Details = d.answer(q)
			i++
		}
	}
	t.Details = all.answer(q)
}

// keys are the keys of groups of a set.
func (g *rowGrouper) keys(set int, groups []int) []Key {
	numbers := make([]int, len(groups))
	for i, group := range groups {
		switch largest := g.sets[set].largest; {
		case largest == nil:
			numbers[i] = g.from + group
		case group < len(largest.groups):
			numbers[i] = largest.groups[group]
		}
	}
	if len(g.query.By) == 0 {
		return make([]Key, len(groups))
	}
	return g.rows.Keys(set, numbers)
}

// key appends to key the values of k that the query asks for.
func (q *GroupQuery) key(key []string, k Key) []string {
	dimensions := len(q.By)
	switch {
	case dimensions == 0:
		return nil
	case q.Apart:
		dimensions = 1
	}
	return append(key, k.ID, k.Name, k.Tag)[:dimensions]
}

// groupScores answers a query about the scores over time.
func groupScores(q *GroupQuery, rows Rows, each func(*GroupTotals) error) error {
	cells := make(partialScores)
	err := rows.Scan(&Scan{
		Filter: q.Filter, Window: q.Window, Parts: CountParts,
		Begin: func(PartialSums) PartialSums { return &scoreAdder{query: q, cells: make(partialScores)} },
		Merge: func(sums PartialSums, groups [][]int) bool {
			for c, scores := range sums.(*scoreAdder).cells {
				c.group = groups[0][c.group]
				cells[c] = append(cells[c], scores...)
			}
			return true
		},
	})
	if err != nil {
		return err
	}
	byGroup := make(map[int][]Cell)
	p := NewCancelCheck(rows.Err)
	for at, scores := range cells {
		sum := sumOf(scores, p)
		if p.ended != nil {
			return p.ended
		}
		byGroup[at.group] = append(byGroup[at.group], Cell{Start: at.start, Counts: Counts{Requests: int64(len(scores))}, ScoreSum: sum})
	}
	for group, cells := range byGroup {
		g := &GroupTotals{Key: []string{rows.Keys(0, []int{group})[0].ID}, Cells: cells}
		for _, c := range cells {
			g.Requests += c.Requests
		}
		if err := each(g); err != nil {
			return err
		}
	}
	return nil
}

// partialScores are the scores of groups over time.
type partialScores map[scoreCell][]float64

// scoreCell is a group in the part of the calendar that begins at start.
type scoreCell struct {
	group int
	start Timestamp
}

// scoreAdder adds scores to their cells.
type scoreAdder struct {
	query *GroupQuery
	cells partialScores
	added int // scores
	// start and next bound the part of the calendar that the last score was of.
	start, next Timestamp
}

// Add implements PartialSums.
func (s *scoreAdder) Add(b *RowBatch) bool {
	s.added += b.Len
	for i, at := range b.CreatedAt {
		if at < s.start || at >= s.next {
			s.start, s.next = s.query.Increment.Around(at, s.query.Zone)
		}
		c := scoreCell{b.Groups[0][i], s.start}
		s.cells[c] = append(s.cells[c], b.Score[i])
	}
	return true
}

// Size implements PartialSums.
func (s *scoreAdder) Size() int { return 64*len(s.cells) + 16*s.added }

// End implements PartialSums.
func (s *scoreAdder) End() int { return 0 }

// sumOf adds numbers up in one order, since floating-point sums depend on it.
func sumOf(numbers []float64, p *CancelCheck) Amount {
	if len(numbers) < stepsBetweenChecks {
		slices.Sort(numbers)
	} else {
		slices.SortFunc(numbers, CancellableOrder(p, cmp.Compare[float64])) // slower
	}
	if p.over(8 * len(numbers)) {
		return Amount{}
	}
	sum := 0.0
	for _, n := range numbers {
		sum += n
	}
	return amount(sum)
}
