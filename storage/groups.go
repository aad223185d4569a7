package storage

import (
	"context"
	"slices"
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
	// Apart groups by each dimension of its own, as SQL does with GROUPING SETS.
	Apart bool
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
	// CountOnly asks for no totals but Requests, First and Last, for which attempts
	// that did not answer then count, too: they are those of all records.
	CountOnly bool
	// Top says that fewer groups will do.
	Top Top
}

// GroupsByTree is true of a query that has ByTree among its dimensions.
func (q *GroupQuery) GroupsByTree() bool { return slices.Contains(q.By, Dimension{Name: ByTree}) }

// Top says which groups are wanted. A backend may answer more of them.
type Top struct {
	// Count is the number of groups, 0 for all.
	Count int
	By    TopBy
	// Until leaves out, of NewestGroups, those of a First behind it; those of this
	// First are answered but do not count. Nil is no bound.
	Until *Timestamp
}

// TopBy is the order of a Top.
type TopBy uint8

const (
	// AnyGroups do, if they have a request; their totals may lack some.
	AnyGroups TopBy = iota
	// NewestGroups are those of the latest First, with all that share the last one.
	NewestGroups
	// LargestGroups are those with the most requests, of equal ones the least by
	// key. What is left is added up in one more group, which tells no ActiveDays.
	// No backend answers more of them.
	LargestGroups
)

// GroupTotals are what the requests of one group add up to.
type GroupTotals struct {
	// Set is the place in By of the dimension of a query that groups by each separately.
	Set int
	// Key has the value of each dimension, "" where there is none. It is nil for
	// the group of what is left by LargestGroups.
	Key []string
	// Others counts the groups that are added up in the one without a key.
	Others int
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
