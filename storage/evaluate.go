package storage

import (
	"math/rand/v2"
	"slices"
)

// Evaluate answers a query from all records there are, in the plainest way: what
// every backend must answer. load returns a record's content, nil when there is
// none.
func Evaluate(q *RequestQuery, records []*Record, load func(*Record) *Content) []*Record {
	type candidate struct {
		record *Record
		place  *Cursor[SortKey]
	}
	var found []candidate
	m := NewMatcher(q.Filter, nil)
	for _, r := range records {
		if !q.Selects(r) || !m.Match(r, func() *Content { return load(r) }) {
			continue
		}
		var c *Content
		if q.SortsByContent() {
			c = load(r)
		}
		if place := q.Cursor(r, c); q.After == nil || place.Compare(q.After) > 0 {
			found = append(found, candidate{r, place})
		}
	}
	if q.Random {
		rand.Shuffle(len(found), func(i, j int) { found[i], found[j] = found[j], found[i] })
	} else {
		slices.SortFunc(found, func(a, b candidate) int { return a.place.Compare(b.place) })
	}
	found = found[min(q.Offset, len(found)):]
	var page []*Record
	for _, c := range found[:min(q.Limit, len(found))] {
		page = append(page, c.record)
	}
	return page
}

// Selects tells whether all of a query but its filter is true of a record.
func (q *RequestQuery) Selects(r *Record) bool {
	is := func(want *bool, got bool) bool { return want == nil || *want == got }
	return r.Org == q.Org && is(q.Cached, r.Cached()) && is(q.Scored, r.Scored()) &&
		is(q.Experiment, r.ExperimentID != "")
}

// SortsByContent is true when a sort key needs content.
func (q *RequestQuery) SortsByContent() bool {
	return !q.Random && slices.ContainsFunc(q.Sort, func(s Sort) bool { return s.Key.NeedsContent() })
}
