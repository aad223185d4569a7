package storage

import (
	"slices"

	"github.com/weirhq/weir/plugins"
)

// Rows are the requests of one organisation in one state of the store, grouped
// by the RowDimensions of a query. A local backend makes Rows for a query, bound to
// the query's context, and leaves the arithmetic to GroupRows.
type Rows interface {
	// Scan adds rows up.
	Scan(*Scan) error
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

// Scan says which rows are added up, and how. The store is cut into parts, each of which is added
// up on its own: on several processors, or from memory, if the part has not changed since.
type Scan struct {
	// Filter and Window choose the requests. The filter has no leaves about users or sessions.
	Filter Filter
	Window Window
	// Parts are the fields of rows that are read.
	Parts RowParts
	// Among has, for each dimension, the only groups that are told apart. A row's group is then its
	// index there, and one more than the last for all others. Nil tells all groups apart.
	Among [][]int
	// Name identifies what Begin's sums are of, besides the fields above: the same rows have equal
	// sums in every query that has the same name and the same dimensions. "" if they have not.
	Name string
	// Begin returns the sums of no rows. It may use the memory of other sums of Begin, which nobody
	// needs any more; nil for none. Several goroutines may call it at a time.
	Begin func(unused PartialSums) PartialSums
	// Merge takes the sums of a part, one part at a time and in any order, and must not change
	// them. groups has, for each dimension, the groups that the numbers in the sums stand for: they
	// begin at 1, have no large gaps, and do not change between scans of the same Rows. Group 0 is of
	// rows without a value. When Merge returns false, the scan ends without an error.
	Merge func(sums PartialSums, groups [][]int) bool
}

// PartialSums are what the rows of a part of the store add up to.
type PartialSums interface {
	// Add adds rows. The batch is valid until Add returns, and has the fields that Scan.Parts
	// names. When Add returns false, the rest of the part is left out.
	Add(*RowBatch) bool
	// Size is called between Adds. It returns about how many bytes the rows that were added take.
	Size() int
	// End is called after the last Add. It returns about how many bytes the sums take, with the memory
	// that they do not use.
	End() int
}

// RowParts select the fields of rows to read.
type RowParts uint8

const (
	// CountParts are Groups, Attempt, CreatedAt and Score.
	CountParts RowParts = iota
	// CostParts are the CountParts and Cost.
	CostParts
	// TotalParts are the CostParts, and what else Totals add up.
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
	// Groups has, for each dimension, the numbers of the requests' groups in their part of the
	// store, 0 where a request has no value; or what Scan.Among says.
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
	// EndState and what follows is what Details add up. A slice of quantities is empty if they are
	// unknown in all rows.
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
