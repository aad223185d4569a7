package storage

import (
	"fmt"
	"slices"
)

// maxFilterWork bounds the work of a filter for each record, in comparisons of one plain
// value. What a caller may ask for then ends within seconds over a million records.
const maxFilterWork = 20_000

// The work of a leaf.
const (
	plainWork   = 1
	mapWork     = 50   // looks a name up
	contentWork = 1000 // reads a body
	textWork    = 200  // for each KiB of the text that is compared
)

// MaxPropertySort bounds the requests that one query sorts by properties or scores.
const MaxPropertySort = 300_000

// SortsByProperty is true when a sort key is a property or a score, which have no column.
func (q *RequestQuery) SortsByProperty() bool { return q.SortsByScore() || q.sortsBy(SortProperties) }

// SortsByScore is true when a sort key is a score, by which databases do not sort.
func (q *RequestQuery) SortsByScore() bool { return q.sortsBy(SortScores) }

func (q *RequestQuery) sortsBy(k SortKey) bool {
	return !q.Random && slices.ContainsFunc(q.Sort, func(s Sort) bool { return s.Key == k })
}

// ErrSortWork is the error of a query that would sort too many requests by properties or scores.
func ErrSortWork(limit int) error {
	return &FilterError{Path: "sort.properties", Problem: fmt.Sprintf("sort_work: more than %d requests would be put into order by a property or a score; narrow the filter or the time", limit)}
}

// CheckFilterWork refuses a filter that takes more work than a query may, with a
// *FilterError.
func CheckFilterWork(f Filter) error {
	work := 0
	for l := range Leaves(f) {
		switch {
		case l.Field.Content != 0:
			work += contentWork
		case l.Field.Map:
			work += mapWork
		default:
			work += plainWork
		}
		work += textWork * (len(l.Text) >> 10)
	}
	if work <= maxFilterWork {
		return nil
	}
	return &FilterError{Path: "filter", Problem: fmt.Sprintf(
		"filter_work is %d, of at most %d: a leaf about bodies counts %d, about properties or scores %d, any other %d, and each KiB of its text %d more",
		work, maxFilterWork, contentWork, mapWork, plainWork, textWork)}
}
