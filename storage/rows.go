package storage

import (
	"slices"

	"github.com/weirhq/weir/plugins"
)

// Rows are the requests of one organisation in one state of the store, grouped
// by the RowDimensions of a query. A local backend makes Rows for a query, bound to
// the query's context, and leaves the arithmetic to GroupRows.
type Rows interface {
	// Scan calls each with the requests that the filter and the window choose,
	// in any order, until each returns false, which is no error. The filter has
	// no leaves about users or sessions. The row is each's until it returns, and
	// has what the parts say.
	Scan(f Filter, w Window, parts RowParts, each func(*Row) bool) error
	// Keys are what groups of a dimension, by its place, stand for. They may have to be
	// read.
	Keys(dimension int, groups []int) []Key
	// Room is how many groups have room in memory at the same time, all with their totals,
	// and how many parts of them by time. Of more groups the rows are scanned again, and
	// more parts are ErrTooManyGroups.
	Room() (groups, cells int)
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

// RowDimensions are those by which Rows must be grouped to answer a query with
// GroupRows. It is false of a query that Rows do not answer. BySession stands for
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
