package storage

import (
	"cmp"
	"slices"
	"sort"
	"strings"

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
	parts, value := q.rowTotal()
	err := q.scanGroups(rows, parts, func(set, group int, b *RowBatch, i int) {
		sets[set] = grown(sets[set], group+1)
		c, at := &sets[set][group], b.CreatedAt[i]
		if c.rows == 0 {
			c.first, c.last = at, at
		}
		c.rows++
		c.first, c.last = min(c.first, at), max(c.last, at)
		c.total = c.total.Plus(value(b, i))
	})
	if durations := q.Top.GroupSort().Key.duration(); durations != nil && err == nil {
		err = q.setPercentiles(rows, sets, durations)
	}
	return sets, err
}

// scanGroups calls each with every chosen row, once for its group in each set: b.Len calls for a
// batch, with the row's index in it.
func (q *GroupQuery) scanGroups(rows Rows, parts RowParts, each func(set, group int, b *RowBatch, i int)) error {
	sets := len(q.By)
	if !q.Apart {
		sets = min(1, sets)
	}
	return rows.Scan(q.Filter, q.Window, parts, func(b *RowBatch) bool {
		for i := range b.Len {
			if q.Known && b.Groups[0][i] == 0 {
				continue
			}
			if sets == 0 {
				each(0, 0, b, i)
			}
			for set := range sets {
				each(set, b.Groups[set][i], b, i)
			}
		}
		return true
	})
}

// setPercentiles replaces the totals by percentiles of a duration. One scan keeps the
// durations of as many groups as there is room for.
func (q *GroupQuery) setPercentiles(rows Rows, sets [][]count, durations func(*RowBatch) []plugins.Duration) error {
	limit, _ := rows.Limits()
	for from, behind := 0, true; behind; from += limit {
		behind = false
		distributions := make([]Pages[distribution], len(sets))
		err := q.scanGroups(rows, DetailParts, func(set, group int, b *RowBatch, i int) {
			switch {
			case group >= from+limit:
				behind = true
			case group >= from && !b.Attempt[i] && durations(b)[i].Valid:
				distributions[set].At(group - from).add(durations(b)[i].N)
			}
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

// rowTotal returns a function that tells what a row adds to the total by which groups are
// put into order, and the parts of the row that the function reads.
func (q *GroupQuery) rowTotal() (RowParts, func(b *RowBatch, i int) plugins.Count) {
	if q.Top.GroupSort().Key == totalRequests {
		return CountParts, func(b *RowBatch, i int) plugins.Count {
			if b.Attempt[i] && !q.CountOnly {
				return plugins.Known(0)
			}
			return plugins.Known(1)
		}
	}
	c, d := new(Counts), new(Details)
	return DetailParts, func(b *RowBatch, i int) plugins.Count {
		*c, *d = Counts{}, Details{}
		c.add(b, i)
		d.add(b, i)
		return q.Top.total(c, d)
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
	groups = q.behindOf(rows, set, groups, counts)
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

// behindOf returns the groups, which are in order, that come behind After.
func (q *GroupQuery) behindOf(rows Rows, set int, groups []int, counts []count) []int {
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
			if q.behind(set, after, key.ID) {
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
