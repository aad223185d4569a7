package storage

import (
	"context"

	"github.com/weirhq/weir/plugins"
)

// Grouper answers what requests add up to. A Backend is one; the queries about
// users, sessions, scores and metrics are questions of this kind.
type Grouper interface {
	// Groups calls each with the groups of a query, in any order, and ends with
	// the first error of each. The group is each's until it returns.
	Groups(ctx context.Context, q *GroupQuery, each func(*GroupTotals) error) error
}

// GroupQuery asks what the requests of each group add up to, which a database
// answers with GROUP BY.
type GroupQuery struct {
	Org string
	// Filter and Window choose requests. The filter has no leaves about users or
	// sessions.
	Filter Filter
	Window Window
	// By is what requests are grouped by; none makes a single group of all of
	// them, which is there even when there is no request.
	By []Dimension
	// Known leaves out requests that lack the first dimension.
	Known bool
	// Any are filters about requests: the answer tells of each whether it is true
	// of any request of the group.
	Any []Filter
	// Buckets cut the totals by time; they contain the Window. Increment cuts
	// them by the calendar of Zone instead. Without either there are no cells.
	Buckets   Buckets
	Increment Increment
	// Zone decides what a day is.
	Zone Zone
	// ActiveDays and Details ask for what they name.
	ActiveDays, Details bool
	// Top says that fewer groups will do.
	Top Top
}

// Top says which groups are wanted. A backend may answer more of them.
type Top struct {
	// Count is the number of groups, 0 for all.
	Count int
	By    TopBy
}

// TopBy is the order of a Top.
type TopBy uint8

const (
	// AnyGroups do, if they have a request; their totals may lack some.
	AnyGroups TopBy = iota
	// NewestGroups are those of the latest First, with all that share the last one.
	NewestGroups
)

// Dimension is what requests are grouped by.
type Dimension struct {
	Name DimensionName
	// Property is the name of the property of ByProperty.
	Property string
}

// DimensionName names the value of a request that is compared.
type DimensionName string

// The dimensions. A request has as many rows as it has scores, feedback included,
// or properties when it is grouped by them.
const (
	ByUser         DimensionName = "user_id"
	BySession      DimensionName = "session_id"
	BySessionName  DimensionName = "session_name"
	BySessionTag   DimensionName = "session_tag"
	ByScore        DimensionName = "score"
	ByModel        DimensionName = "model"
	ByProvider     DimensionName = "provider"
	ByStatus       DimensionName = "status"
	ByEndState     DimensionName = "end_state"
	ByFinish       DimensionName = "finish_reason"
	ByPath         DimensionName = "request_path"
	ByProperty     DimensionName = "property" // the value of one
	ByPropertyName DimensionName = "property_name"
)

// GroupTotals are what the requests of one group add up to.
type GroupTotals struct {
	// Key has the value of each dimension, "" where there is none.
	Key []string
	Totals
	// ActiveDays counts the days with a request.
	ActiveDays int64
	// Any answers GroupQuery.Any.
	Any []bool
	// Details are nil if they were not asked for.
	Details *Details
	// Cells are the buckets with a request or attempt, in any order.
	Cells []Cell
}

// Cell is what the requests of a group in one bucket add up to.
type Cell struct {
	// Start is the start of the bucket.
	Start Timestamp
	Counts
	// ScoreSum adds the scores up if they are grouped by name, of which there
	// are as many as Requests. It is unknown where it is too large for a number.
	ScoreSum Amount
	// Details are nil if they were not asked for.
	Details *Details
}

// Details are totals that cost more to read. Like Totals, they add what is known,
// and attempts that did not answer count for nothing in them.
type Details struct {
	// Errors counts the requests with a status from 400, and those that did not
	// end complete.
	Errors                                          int64
	Input, Output, CacheRead, CacheWrite, Reasoning plugins.Count
	// Latency and TimeToFirstToken are in milliseconds.
	Latency, TimeToFirstToken Percentiles
}

// Percentiles are quantiles, each interpolated linearly between the two values
// around it, and unknown where there are no values.
type Percentiles struct {
	P50 Amount `json:"p50"`
	P95 Amount `json:"p95"`
	P99 Amount `json:"p99"`
}

// percentilesOf orders the values as far as it must.
func percentilesOf[T plugins.Unit](values []T) (p Percentiles) {
	if len(values) == 0 {
		return p
	}
	return Percentiles{amount(quantile(500, values)), amount(quantile(950, values)), amount(quantile(990, values))}
}
