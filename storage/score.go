package storage

import (
	"cmp"
	"context"
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

// Answer makes the series: a point for each score in each bucket where it
// occurs, by time and then by name.
func (q *ScoreQuery) Answer(ctx context.Context, g Grouper) ([]ScorePoint, error) {
	points := []ScorePoint{}
	question := &GroupQuery{Org: q.Org, Filter: q.Filter, Window: q.Window, By: []Dimension{{Name: ByScore}}, Known: true, Increment: q.Increment, Zone: q.Zone}
	err := g.Groups(ctx, question, func(score *GroupTotals) error {
		for _, c := range score.Cells {
			point := ScorePoint{CreatedAtTrunc: c.Start, ScoreKey: score.Key[0], ScoreSum: c.ScoreSum, ScoreCount: c.Requests}
			if c.ScoreSum.Valid {
				point.ScoreAvg = amount(c.ScoreSum.N / float64(c.Requests))
			}
			points = append(points, point)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(points, func(a, b ScorePoint) int {
		return cmp.Or(cmp.Compare(a.CreatedAtTrunc, b.CreatedAtTrunc), cmp.Compare(a.ScoreKey, b.ScoreKey))
	})
	return points, nil
}
