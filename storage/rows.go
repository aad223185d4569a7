package storage

import (
	"slices"

	"github.com/weirhq/weir/plugins"
)

// Rows are the requests of one organisation in one state of the store, grouped
// by the RowDimensions of a query. A local backend makes Rows for a query, bound to
// the query's context, and leaves the arithmetic to GroupRows.
type Rows interface {
	// Scan calls each with batches of the requests that the filter and the window choose,
	// in any order. When each returns false, Scan ends without an error. The filter has
	// no leaves about users or sessions. The batch is valid until each returns, and
	// has the fields that parts names.
	Scan(f Filter, w Window, parts RowParts, each func(*RowBatch) bool) error
	// Keys returns what groups of a dimension stand for. dimension is the dimension's index
	// in RowDimensions. Keys may have to be read from the store.
	Keys(dimension int, groups []int) []Key
	// Limits returns how many groups have room in memory at the same time, all with their
	// totals, and how many cells: parts of groups by time. For more groups the rows are
	// scanned again; more cells are ErrTooManyGroups.
	Limits() (groups, cells int)
	// Err is the error of the query's context, nil until the context ends.
	Err() error
}

// RowParts select the fields of rows to read.
type RowParts uint8

const (
	// CountParts are Groups, Attempt, CreatedAt and Score.
	CountParts RowParts = iota
	// TotalParts are the CountParts, and what Totals add up.
	TotalParts
	// DetailParts are all fields.
	DetailParts
)

// BatchRows bounds the rows of a RowBatch, unless a request has a row for each of its properties. The
// fields that aggregates read of a batch fit into the processor's caches.
const BatchRows = 1024

// RowBatch is what aggregates read of some requests, each field in a slice by the request.
type RowBatch struct {
	// Len is the number of requests.
	Len int
	// Groups has, for each dimension, the numbers of the requests' groups, 0 where a request
	// has no value. Numbers begin at 1, have no large gaps, and do not change between scans
	// of the same Rows.
	Groups [][]int
	// Attempt is true for an attempt that did not answer its call (its AttemptOf
	// is set): its cost counts, its other values do not.
	Attempt []bool
	// Status, Cost, Input, Output, Latency and the times are the record's.
	Status                 []plugins.Count
	CreatedAt, RespondedAt []Timestamp
	Cost                   []plugins.Cost
	Input, Output          []plugins.Count
	Latency                []plugins.Duration
	// EndState and what follows is what Details add up.
	EndState                         []EndState
	TimeToFirstToken                 []plugins.Duration
	CacheRead, CacheWrite, Reasoning []plugins.Count
	CacheSavings, CacheLoss          []plugins.Cost
	// Cached is true if Weir's cache answered.
	Cached                    []bool
	SavedCost, RoutingSavings []plugins.Cost
	// Score is the value of the score, when the rows are scores.
	Score []float64
}

// Key identifies a group of rows.
type Key struct {
	// ID is the value of the dimension; the session's id if the group is a session.
	ID string
	// Name and Tag are the session's, "" if the group is no session.
	Name, Tag string
}

// RowDimensions returns the dimensions by which Rows must be grouped to answer a query with
// GroupRows. ok is false if Rows cannot answer the query. BySession stands for
// id, name and tag together, and ByScore for rows that are scores.
func (q *GroupQuery) RowDimensions() (by []Dimension, ok bool) {
	session := [...]DimensionName{BySession, BySessionName, BySessionTag}
	switch {
	case q.GroupsBy(ByScore):
		return q.By, len(q.By) == 1 && q.Increment != "" && len(q.Any) == 0 && q.Top.By == AnyGroups && !q.Details && !q.CountOnly
	case q.Increment != "", (q.Apart || q.Top.By == LargestGroups) && (q.ActiveDays || len(q.Any) > 0):
		return nil, false
	case q.Apart || len(q.By) < 2:
		return q.By, !slices.ContainsFunc(q.By, func(d Dimension) bool { return slices.Contains(session[:], d.Name) })
	}
	for i, d := range q.By {
		if i >= len(session) || d.Name != session[i] {
			return nil, false
		}
	}
	return q.By[:1], true
}
