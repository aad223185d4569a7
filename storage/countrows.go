package storage

import (
	"cmp"
	"slices"
	"strings"
)

// rowCounts count the rows of each group of each set, which costs less than totals.
type rowCounts struct {
	query *GroupQuery
	rows  Rows
	sets  [][]count
}

// count tells of the rows of a group how many there are, and of when the first and
// the last is.
type count struct {
	rows, requests int64
	first, last    Timestamp
}

func newRowCounts(q *GroupQuery, rows Rows) (*rowCounts, error) {
	t := &rowCounts{query: q, rows: rows, sets: make([][]count, max(1, len(q.By)))}
	if !q.Apart {
		t.sets = t.sets[:1]
	}
	return t, rows.Scan(q.Filter, q.Window, CountParts, func(r *Row) bool {
		if q.Known && r.Groups[0] == 0 {
			return true
		}
		for i := range t.sets {
			group := 0
			if len(q.By) > 0 {
				group = r.Groups[i]
			}
			t.sets[i] = grown(t.sets[i], group+1)
			c := &t.sets[i][group]
			if c.rows == 0 {
				c.first, c.last = r.CreatedAt, r.CreatedAt
			}
			c.rows++
			c.first, c.last = min(c.first, r.CreatedAt), max(c.last, r.CreatedAt)
			if !r.Attempt || q.CountOnly {
				c.requests++
			}
		}
		return true
	})
}

// largestGroups are the groups with the most requests.
type largestGroups struct {
	groups []int
	// places has the place in groups of each group, and the one behind the last for
	// the others, of which there are so many.
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
	slices.SortFunc(groups, CancellableOrder(NewCancelCheck(rows.Err), func(a, b int) int {
		return cmp.Compare(counts[b].requests, counts[a].requests)
	}))
	most := min(q.Top.Count, len(groups))
	l := &largestGroups{groups: groups[:most], places: slices.Repeat([]int{most}, len(counts)), others: len(groups) - most}
	if len(q.By) > 0 && 0 < most && most < len(groups) {
		last := counts[groups[most-1]].requests
		isLast := func(group int) bool { return counts[group].requests == last }
		above := slices.IndexFunc(groups, isLast)
		equal := groups[above:]
		if others := slices.IndexFunc(equal, func(group int) bool { return !isLast(group) }); others >= 0 {
			equal = equal[:others]
		}
		l.groups = append(groups[:above], leastByKey(rows, set, equal, most-above)...)
	}
	for i, group := range l.groups {
		l.places[group] = i
	}
	return l
}

// leastByKey are so many of some groups.
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
	t, err := newRowCounts(q, rows)
	if err != nil {
		return err
	}
	g := &rowGrouper{query: q, rows: rows, sets: make([]rowSet, len(t.sets))}
	for i := range g.sets {
		s := &g.sets[i]
		if q.Top.By == LargestGroups {
			s.largest = q.largest(rows, i, t.sets[i])
		}
		for group, c := range t.sets[i] {
			if c.rows == 0 {
				continue
			}
			if s.largest != nil {
				group = s.largest.places[group]
			}
			s.sums.at(group).merge(&Totals{Counts: Counts{Requests: c.requests}, First: c.first, Last: c.last})
		}
		if err := g.answer(i, each); err != nil {
			return err
		}
	}
	return nil
}
