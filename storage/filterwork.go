package storage

import "fmt"

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
