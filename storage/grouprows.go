package storage

import (
	"cmp"
	"slices"
)

// RowGrouping is the dimension by which Rows must be grouped to answer a query
// with GroupRows. It is false of a query that Rows do not answer: they are
// grouped by ByUser, BySession or ByScore alone, without Details. BySession stands
// for id, name and tag together.
func (q *GroupQuery) RowGrouping() (DimensionName, bool) {
	if len(q.By) == 0 || !q.Known || q.Details || q.Apart || q.CountOnly || q.Top.By == LargestGroups {
		return "", false
	}
	sessionDimensions := [...]DimensionName{BySession, BySessionName, BySessionTag}
	for i, d := range q.By {
		if i >= len(sessionDimensions) || len(q.By) > 1 && d.Name != sessionDimensions[i] {
			return "", false
		}
	}
	switch by := q.By[0].Name; by {
	case ByUser:
		return by, q.Increment == ""
	case BySession:
		return by, len(q.By) > 1 && q.Increment == ""
	case ByScore:
		return by, q.Increment != "" && len(q.Any) == 0
	}
	return "", false
}

// GroupRows answers a query from rows that are grouped by its RowGrouping.
func GroupRows(q *GroupQuery, rows Rows, each func(*GroupTotals) error) error {
	if q.By[0].Name == ByScore {
		return groupScores(q, rows, each)
	}
	var (
		sums     byGroup
		days     activeDays
		cells    chains[Counts]
		byBucket = q.Buckets.Len > 0
		anyOne   = q.Top.Count > 0 && q.Top.By == AnyGroups
	)
	err := rows.Scan(q.Filter, q.Window, func(r *Row) bool {
		sums.at(r.Group).add(r)
		if q.ActiveDays && !r.Attempt {
			days.add(r.Group, q.Zone.day(r.CreatedAt))
		}
		if byBucket {
			cells.at(r.Group, int32(q.Buckets.Index(r.CreatedAt))).add(r)
		}
		return r.Attempt || !anyOne
	})
	if err != nil {
		return err
	}
	matched := make([]map[int]bool, len(q.Any))
	for i, f := range q.Any {
		matched[i] = make(map[int]bool)
		err := rows.Scan(And(q.Filter, f), q.Window, func(r *Row) bool {
			matched[i][r.Group] = true
			return true
		})
		if err != nil {
			return err
		}
	}
	g := &GroupTotals{Any: make([]bool, len(q.Any))}
	for group, t := range sums.all() {
		g.Key, g.Totals = rows.Key(group).appendTo(g.Key[:0], len(q.By)), *t
		if q.ActiveDays {
			g.ActiveDays = days.count(group)
		}
		for i := range matched {
			g.Any[i] = matched[i][group]
		}
		g.Cells = g.Cells[:0]
		for bucket, counts := range cells.of(group) {
			start, _ := q.Buckets.Bounds(bucket)
			g.Cells = append(g.Cells, Cell{Start: start, Counts: *counts})
		}
		if err := each(g); err != nil {
			return err
		}
	}
	return nil
}

// appendTo appends so many dimensions of a key.
func (k Key) appendTo(key []string, dimensions int) []string {
	return append(key, k.ID, k.Name, k.Tag)[:dimensions]
}

// groupScores answers a query about the scores over time.
func groupScores(q *GroupQuery, rows Rows, each func(*GroupTotals) error) error {
	type place struct {
		group int
		start Timestamp
	}
	cells := make(map[place][]float64)
	var start, next Timestamp
	err := rows.Scan(q.Filter, q.Window, func(r *Row) bool {
		if r.CreatedAt < start || r.CreatedAt >= next {
			start, next = q.Increment.around(r.CreatedAt, q.Zone)
		}
		p := place{r.Group, start}
		cells[p] = append(cells[p], r.Score)
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
		g := &GroupTotals{Key: []string{rows.Key(group).ID}, Cells: cells}
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
	if len(numbers) < patienceSteps {
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
