package storage

import (
	"cmp"
	"slices"
)

// ScoreQuery asks for the scores of requests over time.
type ScoreQuery struct {
	Org string
	// Filter has leaves about requests.
	Filter Filter
	Window Window
	// Zone aligns the buckets.
	Zone      Zone
	Increment Increment
}

// ScorePoint is what the values of one score in one bucket add up to.
type ScorePoint struct {
	// CreatedAtTrunc is the start of the bucket.
	CreatedAtTrunc Timestamp `json:"created_at_trunc"`
	ScoreKey       string    `json:"score_key"`
	// ScoreAvg and ScoreSum are unknown where the sum is too large for a
	// number.
	ScoreAvg   Amount `json:"score_avg"`
	ScoreSum   Amount `json:"score_sum"`
	ScoreCount int64  `json:"score_count"`
}

// Answer makes the series from rows grouped ByScore: a point for each score in
// each bucket where it occurs, by time and then by name.
func (q *ScoreQuery) Answer(rows Rows) ([]ScorePoint, error) {
	type cell struct {
		start Timestamp
		group int
	}
	cells := make(map[cell][]float64)
	var start, next Timestamp
	err := rows.Scan(q.Filter, q.Window, func(r *Row) bool {
		if r.CreatedAt < start || r.CreatedAt >= next {
			start, next = q.Increment.around(r.CreatedAt, q.Zone)
		}
		c := cell{start, r.Group}
		cells[c] = append(cells[c], r.Score)
		return true
	})
	if err != nil {
		return nil, err
	}
	points := make([]ScorePoint, 0, len(cells))
	p := NewCancelCheck(rows.Err)
	for c, scores := range cells {
		// In one order, since floating-point sums depend on it.
		if len(scores) < patienceSteps {
			slices.Sort(scores)
		} else {
			slices.SortFunc(scores, CancellableOrder(p, cmp.Compare[float64])) // slower
		}
		if p.over(8 * len(scores)) {
			return nil, p.ended
		}
		sum := 0.0
		for _, s := range scores {
			sum += s
		}
		points = append(points, ScorePoint{
			CreatedAtTrunc: c.start,
			ScoreKey:       rows.Key(c.group).ID,
			ScoreAvg:       amount(sum / float64(len(scores))),
			ScoreSum:       amount(sum),
			ScoreCount:     int64(len(scores)),
		})
	}
	slices.SortFunc(points, func(a, b ScorePoint) int {
		return cmp.Or(cmp.Compare(a.CreatedAtTrunc, b.CreatedAtTrunc), cmp.Compare(a.ScoreKey, b.ScoreKey))
	})
	return points, p.ended
}
