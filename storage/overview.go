package storage

// UserOverviewQuery asks what users cost and ask over time (interface.md,
// endpoint 4).
type UserOverviewQuery struct {
	Org string
	// Filter has leaves about requests and about users; see SplitFilter.
	Filter Filter
	// Window chooses requests. Without bounds the series runs from the first to
	// the last request of the users.
	Window Window
	// Zone aligns the buckets, and decides what a day is.
	Zone Zone
	Series
}

// UserOverview is the answer to a UserOverviewQuery: the quantile over the users
// of each bucket, of what each did in that bucket.
type UserOverview struct {
	// UserCost is in US dollars.
	UserCost     []Point `json:"user_cost"`
	RequestCount []Point `json:"request_count"`
}
