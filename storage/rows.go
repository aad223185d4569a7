package storage

import "github.com/weirhq/weir/plugins"

// Rows are the requests of one organisation in one state of the store, grouped
// in one way. A local backend makes Rows for a query, bound to the query's
// context, and leaves the arithmetic to GroupRows.
type Rows interface {
	// Scan calls each with the requests that the filter and the window choose,
	// in any order, until each returns false, which is no error. The filter has
	// no leaves about users or sessions. Requests without a group are left out.
	// The row is each's until it returns.
	Scan(f Filter, w Window, each func(*Row) bool) error
	// Key is what a group stands for.
	Key(group int) Key
	// Err is the error of the query's context, nil until that ends.
	Err() error
}

// Row is what aggregates read of one request.
type Row struct {
	// Group numbers the user, session or score, from 0 without large gaps, the
	// same in all scans of the same Rows.
	Group int
	// Attempt is true of an attempt that did not answer its call (its AttemptOf
	// is set): its cost counts, the rest does not.
	Attempt bool
	// Status, Cost, Input, Output, Latency and the times are the record's.
	Status                 plugins.Count
	CreatedAt, RespondedAt Timestamp
	Cost                   plugins.Cost
	Input, Output          plugins.Count
	Latency                plugins.Duration
	// The rest is what Details add up.
	EndState                         EndState
	TimeToFirstToken                 plugins.Duration
	CacheRead, CacheWrite, Reasoning plugins.Count
	// Score is the value of the score.
	Score float64
}

// Key is what a group of rows stands for.
type Key struct {
	// ID is the user id, the session id or the score's name.
	ID string
	// Name and Tag are the session's.
	Name, Tag string
}
