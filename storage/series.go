package storage

// Series says what a query over time makes of the values of users or sessions.
type Series struct {
	// Quantile is what a bucket tells of its values. The zero Quantile is the
	// least of them; use DefaultQuantile.
	Quantile Quantile
	// Interquartile first drops what is outside the 25th to 75th percentile of
	// the measure over the window; the bounds stay.
	Interquartile bool
	// Distribution answers a histogram over the values in place of time.
	Distribution bool
}

// Point is one bucket of a series.
type Point struct {
	// RangeStart and RangeEnd are timestamps; in a histogram, numbers. The end
	// is the start of the next bucket.
	RangeStart string `json:"range_start"`
	RangeEnd   string `json:"range_end"`
	// Value is 0 where nothing is in the bucket, and unknown where nothing of
	// what is in it is known; in a histogram, the number of values.
	Value Amount `json:"value"`
	// RequestsWithoutCost counts the requests whose cost Value lacks.
	RequestsWithoutCost int64 `json:"requests_without_cost,omitempty"`
}
