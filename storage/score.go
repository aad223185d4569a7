package storage

// ScoreQuery asks for the scores of requests over time (interface.md, endpoint
// 5).
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
