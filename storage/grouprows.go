package storage

import (
	"cmp"
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
	g := &rowGrouper{query: q, rows: rows, window: q.Window}
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
	// first is the first set that rows are added to: 0 or 1. If it is 1, set 0 has all rows
	// in a single group, and is made of the groups of set 1.
	first int
	// many is true once the largest groups are wanted of more than fewGroups.
	many bool
	// matched says, for each of the query's Any, which groups match.
	matched [][]bool
	// If there are too many groups, a scan adds up most groups, beginning with the group
	// from. window contains the rows of these groups, later the rows of the groups behind.
	from, limit   int
	window, later Window
	// tooMany is true once there are more than mostCells cells, in all scans together.
	mostCells int
	tooMany   bool
	// groups, totals and buckets are of the rows of a batch.
	groups  []int
	totals  []*Totals
	buckets []int32
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

// fewGroups is how many groups are added up before it is known which are the largest. If
// there are more groups, their rows are counted first.
const fewGroups = 128

// scan adds up what the query chooses.
func (g *rowGrouper) scan() error {
	largest := g.query.Top.By == LargestGroups
	if err := g.addUp(nil); err != nil || !largest {
		return err
	}
	if g.many {
		counts, err := countGroups(g.query, g.rows)
		if err == nil {
			err = g.addUp(counts)
		}
		return err
	}
	for i := range g.sets {
		g.keepLargest(i)
	}
	return nil
}

// addUp adds the rows to their groups. If counted is not nil, it adds them to the largest
// groups, and to the group of all others.
func (g *rowGrouper) addUp(counted [][]count) error {
	q := g.query
	if g.from == 0 {
		g.sets = make([]rowSet, max(1, len(q.By)))
		if !q.Apart {
			g.sets = g.sets[:1]
		}
	}
	g.later = never
	if counted != nil {
		for i := range g.sets {
			g.sets[i].largest = q.largest(g.rows, i, counted[i])
		}
	}
	parts := TotalParts
	if q.Details {
		parts = DetailParts
	}
	if q.Apart && len(q.By) > 1 && q.By[0] == (Dimension{}) {
		g.first = 1
	}
	err := g.rows.Scan(q.Filter, g.window, parts, g.add)
	if err == nil && g.tooMany {
		err = ErrTooManyGroups
	}
	if err == nil && g.first > 0 {
		g.sets[0].merge(&g.sets[1], func(int) int { return 0 })
	}
	return err
}

// keepLargest keeps the largest groups of a set, and merges all others into one group.
func (g *rowGrouper) keepLargest(set int) {
	of := g.sets[set]
	var counts []count
	for group, totals := range of.sums.all() {
		counts = grown(counts, group+1)
		var details detailSums
		for _, d := range of.details.of(group) {
			details.merge(d)
		}
		counts[group] = count{rows: 1, total: g.query.Top.total(&totals.Counts, details.answer(g.query))}
	}
	s := rowSet{largest: g.query.largest(g.rows, set, counts)}
	s.merge(&of, func(group int) int { return s.largest.places[group] })
	g.sets[set] = s
}

// add adds the rows of a batch to their groups.
func (g *rowGrouper) add(b *RowBatch) (more bool) {
	q := g.query
	if q.Buckets.Len > 0 {
		g.buckets = q.Buckets.indexes(b.CreatedAt, g.buckets[:0])
	} else {
		g.buckets = slices.Grow(g.buckets[:0], b.Len)[:b.Len]
		clear(g.buckets)
	}
	for set := g.first; set < len(g.sets); set++ {
		if !g.place(set, b) {
			return false
		}
		if g.addTo(&g.sets[set], b); g.tooMany {
			return false
		}
	}
	added := func(t *Totals) bool { return t != nil }
	return q.Top.Count == 0 || q.Top.By != AnyGroups || !slices.ContainsFunc(g.totals, added)
}

// place finds the groups of the rows of a batch in a set, -1 for rows that are left out.
func (g *rowGrouper) place(set int, b *RowBatch) (more bool) {
	q, s := g.query, &g.sets[set]
	g.groups = g.groups[:0]
	for i := range b.Len {
		group := 0
		if len(q.By) > 0 {
			group = b.Groups[set][i] - g.from
		}
		switch {
		case q.Known && b.Groups[0][i] == 0:
			group = -1
		case s.largest != nil:
			group = s.largest.places[group]
		case q.Top.By == LargestGroups && group > fewGroups:
			g.many = true
			return false
		case q.Top.By == LargestGroups || q.Apart:
		case group >= g.limit:
			g.later = g.later.include(b.CreatedAt[i])
			group = -1
		}
		g.groups = append(g.groups, group)
	}
	return true
}

// addTo adds the rows of a batch to their groups of a set, which are less than 0 for rows that are
// left out.
func (g *rowGrouper) addTo(s *rowSet, b *RowBatch) {
	q := g.query
	g.totals = slices.Grow(g.totals[:0], b.Len)[:b.Len]
	for i, group := range g.groups {
		if g.totals[i] = nil; group < 0 {
			continue
		}
		g.totals[i] = s.sums.At(group)
		if q.ActiveDays && !b.Attempt[i] {
			s.days.add(group, q.Zone.day(b.CreatedAt[i]))
		}
		if q.Buckets.Len > 0 {
			s.cells.at(group, g.buckets[i]).add(b, i)
		}
		if q.Details {
			s.details.at(group, g.buckets[i]).add(b, i)
		}
	}
	addTotals(g.totals, b)
	g.tooMany = len(s.cells.links) > g.mostCells
}

// clear makes room for other groups.
func (s *rowSet) clear() {
	s.sums.clear()
	s.days.sets.clear()
	s.cells.clear()
	s.details.clear()
}

// merge adds the groups of another set. place returns the group of s to which a group of the
// other set is added.
func (s *rowSet) merge(of *rowSet, place func(group int) int) {
	for group, totals := range of.sums.all() {
		to := place(group)
		s.sums.At(to).merge(totals)
		for bucket, counts := range of.cells.of(group) {
			s.cells.at(to, int32(bucket)).merge(counts)
		}
		for bucket, details := range of.details.of(group) {
			s.details.at(to, int32(bucket)).merge(details)
		}
	}
}

// any finds out which groups match each of the query's Any.
func (g *rowGrouper) any() error {
	q := g.query
	g.matched = make([][]bool, len(q.Any))
	for at, f := range q.Any {
		err := g.rows.Scan(And(q.Filter, f), g.window, CountParts, func(b *RowBatch) bool {
			for i := range b.Len {
				group := 0
				if len(q.By) > 0 {
					group = b.Groups[0][i] - g.from
				}
				if 0 <= group && group < g.limit {
					g.matched[at] = grown(g.matched[at], group+1)
					g.matched[at][group] = true
				}
			}
			return true
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
	for bucket, counts := range s.cells.of(group) {
		start, _ := q.Buckets.Bounds(bucket)
		t.Cells = append(t.Cells, Cell{Start: start, Counts: *counts})
	}
	if !q.Details {
		return
	}
	var all detailSums
	i := 0
	for _, d := range s.details.of(group) { // in the order of the cells
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
	type cell struct {
		group int
		start Timestamp
	}
	cells := make(map[cell][]float64)
	var start, next Timestamp
	err := rows.Scan(q.Filter, q.Window, CountParts, func(b *RowBatch) bool {
		for i, at := range b.CreatedAt {
			if at < start || at >= next {
				start, next = q.Increment.Around(at, q.Zone)
			}
			c := cell{b.Groups[0][i], start}
			cells[c] = append(cells[c], b.Score[i])
		}
		return true
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
