package storage

import "github.com/weirhq/weir/plugins"

// Rows are the requests of one organisation in one state of the store, grouped
// by the RowDimensions of a query. A local backend makes Rows for a query, bound to
// the query's context, and leaves the arithmetic to GroupRows.
type Rows interface {
	// Scan calls each with the requests that the filter and the window choose,
	// in any order, until each returns false, which is no error. The filter has
	// no leaves about users or sessions. The row is each's until it returns, and
	// has what the parts say.
	Scan(f Filter, w Window, parts RowParts, each func(*Row) bool) error
	// Key is what a group of a dimension, by its place, stands for.
	Key(dimension, group int) Key
	// Err is the error of the query's context, nil until that ends.
	Err() error
}

// RowParts say what is read of rows.
type RowParts uint8

const (
	// CountParts are Groups, Attempt, CreatedAt and Score.
	CountParts RowParts = iota
	// TotalParts are these, and what Totals add up.
	TotalParts
	// DetailParts are all.
	DetailParts
)

// Row is what aggregates read of one request.
type Row struct {
	// Groups numbers what the request has of each dimension, from 1 without large
	// gaps, the same in all scans of the same Rows; 0 for nothing.
	Groups []int
	// Attempt is true of an attempt that did not answer its call (its AttemptOf
	// is set): its cost counts, the rest does not.
	Attempt bool
	// Status, Cost, Input, Output, Latency and the times are the record's.
	Status                 plugins.Count
	CreatedAt, RespondedAt Timestamp
	Cost                   plugins.Cost
	Input, Output          plugins.Count
	Latency                plugins.Duration
	// EndState and what follows is what Details add up.
	EndState                         EndState
	TimeToFirstToken                 plugins.Duration
	CacheRead, CacheWrite, Reasoning plugins.Count
	CacheSavings, CacheLoss          plugins.Cost
	// Score is the value of the score, when the rows are scores.
	Score float64
}

// Key is what a group of rows stands for.
type Key struct {
	// ID is the value, of a session its id.
	ID string
	// Name and Tag are the session's.
	Name, Tag string
}
