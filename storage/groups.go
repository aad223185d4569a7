package storage

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Grouper answers what requests add up to. A Backend is a Grouper; the queries about
// users, sessions, scores and metrics are questions to a Grouper.
type Grouper interface {
	// Groups calls each with the groups of a query, in any order, and ends with
	// the first error of each. The group is valid until each returns.
	Groups(ctx context.Context, q *GroupQuery, each func(*GroupTotals) error) error
}

// Question is a query that a Grouper's groups answer, such as a UserQuery.
type Question[A any] interface {
	Answer(ctx context.Context, g Grouper) (A, error)
}

// GroupQuery asks what the requests of each group add up to, which a database
// answers with GROUP BY.
type GroupQuery struct {
	Org string
	// Filter and Window choose requests. The filter has no leaves about users or
	// sessions.
	Filter Filter
	Window Window
	// By is what requests are grouped by. Without dimensions, all requests make a single
	// group, which is answered even when there is no request.
	By []Dimension
	// Apart groups by each dimension of its own, as SQL does with GROUPING SETS.
	Apart bool
	// Known leaves out requests that lack the first dimension.
	Known bool
	// Any are filters about requests. The answer says for each filter whether it is true
	// of any request of the group.
	Any []Filter
	// Buckets cut the totals by time; they contain the Window. Increment cuts
	// the totals by the calendar of Zone instead. Without either there are no cells.
	Buckets   Buckets
	Increment Increment
	// Zone decides what a day is.
	Zone Zone
	// ActiveDays and Details ask for what they name.
	ActiveDays, Details bool
	// CountOnly asks for no totals but Requests, First and Last. Attempts that did not
	// answer then count, too: the totals are over all records.
	CountOnly bool
	// Top says that fewer groups will do.
	Top Top
	// Choose, if not nil, is called once for each group and reports whether the group is
	// answered. The group may not have its Key yet: keys are dear to read where groups are
	// many.
	Choose func(*GroupTotals) bool
}

// Chooses reports whether a group is wanted.
func (q *GroupQuery) Chooses(g *GroupTotals) bool { return q.Choose == nil || q.Choose(g) }

// GroupsBy reports whether the query has a dimension with the name.
func (q *GroupQuery) GroupsBy(name DimensionName) bool {
	return slices.ContainsFunc(q.By, func(d Dimension) bool { return d.Name == name })
}

// Top says which groups are wanted. A backend may answer more groups.
type Top struct {
	// Count is the number of groups, 0 for all.
	Count int
	By    TopBy
	// Until leaves out, of NewestGroups, groups whose First is later than Until. Groups
	// whose First is Until are answered but do not count. Nil is no bound.
	Until *Timestamp
	// Sort says which of LargestGroups are large. The query asks for Details unless
	// Sort is by requests.
	Sort GroupSort
	// After leaves out, of LargestGroups, the groups up to a place. A query with After has
	// one dimension, or groups by each separately. Nil leaves out no group.
	After *Cursor[TotalKey]
}

// TopBy is the order of a Top.
type TopBy uint8

const (
	// AnyGroups asks for any groups that have a request; their totals may lack requests.
	AnyGroups TopBy = iota
	// NewestGroups are the groups with the latest First, and all groups with the same First
	// as the last of them.
	NewestGroups
	// LargestGroups are the first groups in the order of Sort. All others are added up in
	// one more group, which has no ActiveDays. No backend answers more groups than wanted.
	LargestGroups
)

// ErrTooManyGroups: there is no room for what a query adds up.
var ErrTooManyGroups = errors.New("the query adds up more users, sessions or other groups than there is memory for; narrow its time or its filter")

// GroupTotals are what the requests of one group add up to.
type GroupTotals struct {
	// Set is the index in By of the group's dimension, if the query groups by each
	// separately.
	Set int
	// Key has the value of each dimension, "" where requests have no value. It is nil for
	// the group of all others that LargestGroups adds.
	Key []string
	// Others counts the groups that are added up in the group without a key.
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
	// ScoreSum is the sum of the scores if they are grouped by name; there are as many
	// scores as Requests. It is unknown if it is too large for a number.
	ScoreSum Amount
	// Details are nil if they were not asked for.
	Details *Details
}

// Dimension is what requests are grouped by. The zero Dimension puts all requests
// into one group.
type Dimension struct {
	Name DimensionName
	// Property is the name of the property of ByProperty.
	Property string
}

// DimensionName names the value of a request that is compared.
type DimensionName string

// The dimensions besides the fields of RequestResponse, by their names. Grouped by
// scores, a request has a row for each of its scores, feedback included. Grouped by
// properties, it has a row for each property.
const (
	ByUser         DimensionName = "user_id"
	BySession      DimensionName = "session_id"
	BySessionName  DimensionName = "session_name"
	BySessionTag   DimensionName = "session_tag"
	ByScore        DimensionName = "score"
	ByProperty     DimensionName = "property" // the value of one property
	ByPropertyName DimensionName = "property_key"
	// ByTree is the root_request_id of a request; the request's own id if the request is
	// the root of another request that the query chooses.
	ByTree DimensionName = "root_request_id"
)

// Dimensions are the names by which callers may group requests. The last name stands for the
// names of properties. PropertyPrefix before a name stands for the values of the property.
var Dimensions = []DimensionName{
	"model", "provider", ByUser, "status", "end_state", "stream", "request_path", "finish_reason", "error_type", "error_message", "error_group", "cache_miss_reason",
	"request_model", "country_code", "prompt_id", "prompt_version", "node_id", "job_id", "key_id", "project", "request_referrer",
	"cached", "is_passthrough_billing", "threat", ByTree, ByPropertyName,
}

// PropertyPrefix stands before the name of a property that is a dimension.
const PropertyPrefix = "property:"

// ParseDimension reads one of Dimensions, or the name of a property after
// PropertyPrefix.
func ParseDimension(s string) (Dimension, error) {
	if name, ok := strings.CutPrefix(s, PropertyPrefix); ok && name != "" {
		return Dimension{Name: ByProperty, Property: name}, nil
	}
	if name := DimensionName(s); slices.Contains(Dimensions, name) {
		return Dimension{Name: name}, nil
	}
	return Dimension{}, errors.New(Unknown("field", s, append(slices.Clone(Dimensions), PropertyPrefix+"<name>")))
}

// String is the name that ParseDimension reads.
func (d Dimension) String() string {
	if d.Name == ByProperty {
		return PropertyPrefix + d.Property
	}
	return string(d.Name)
}

// values are the values that the record has in the dimension.
func (g *RecordGrouper) values(d Dimension, r *Record) []string {
	switch d.Name {
	case "":
		return []string{""}
	case BySessionName:
		return []string{r.SessionName}
	case BySessionTag:
		return []string{g.tags[r.SessionID]}
	case ByTree:
		switch {
		case r.RootID != uuid.Nil:
			return []string{r.RootID.String()}
		case g.roots[r.ID]:
			return []string{r.ID.String()}
		}
		return []string{""}
	case ByProperty:
		return []string{r.Properties[d.Property]}
	case ByPropertyName:
		return slices.Collect(maps.Keys(r.Properties))
	case ByScore:
		names := slices.Collect(maps.Keys(r.Scores))
		if r.Feedback != nil {
			names = append(names, FeedbackScore)
		}
		return names
	}
	return []string{LookupField(RequestResponse, string(d.Name)).value(r)}
}

// value is the text of a field that compares no content and no map, "" where the
// record lacks it.
func (f *Field) value(r *Record) string {
	switch f.Kind {
	case Boolean:
		if value, known := f.Bool(r); known {
			return strconv.FormatBool(value)
		}
		return ""
	case Number:
		if n := f.Number(r, ""); n.kind == wholeNumber {
			return strconv.FormatInt(n.number, 10)
		}
		return ""
	}
	return f.text(r, nil)
}
