package storage

import (
	"math/rand/v2"
	"slices"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Match reports whether a filter is true of a record. It is the meaning of the
// filter language: every backend answers as if it called Match.
//
// load returns the record's content, nil when there is no content. It is called once
// at most, and only for a leaf that compares content. Without load, no record has content.
func Match(f Filter, r *Record, load func() *Content) bool {
	return Compile(f, nil).Match(r, load)
}

// Match is the function Match for a filter that was compiled without parts taken as a whole.
func (p *Program) Match(r *Record, load func() *Content) bool {
	m := Matcher{program: p}
	return m.Match(r, load)
}

// MatchesWithoutContent reports whether a filter can be true of a record that has no content.
func MatchesWithoutContent(f Filter) bool {
	m := Matcher{program: Compile(f, nil), record: new(Record), content: &none}
	return m.program.Run(func(step int) bool {
		l := m.program.Steps[step].Filter.(*Leaf)
		return l.Field.Content == 0 || m.matchLeaf(l)
	})
}

// Matcher matches one record after the other, in memory that it keeps.
type Matcher struct {
	program *Program
	cancel  *CancelCheck

	record  *Record
	load    func() *Content
	content *Content
	decoded transcript.Unescaper
}

// NewMatcher matches a filter. When the query of cancel is over, what Match
// answers is worth nothing.
func NewMatcher(f Filter, cancel *CancelCheck) *Matcher {
	return &Matcher{program: Compile(f, nil), cancel: cancel}
}

// Match is the function Match.
func (m *Matcher) Match(r *Record, load func() *Content) bool {
	m.record, m.load, m.content = r, load, nil
	return m.program.Run(m.holds)
}

// holds reports whether the leaf of a step is true of the record.
func (m *Matcher) holds(step int) bool {
	return !m.cancel.over(1) && m.matchLeaf(m.program.Steps[step].Filter.(*Leaf))
}

func (m *Matcher) matchLeaf(l *Leaf) bool {
	f := l.Field
	if !f.Applies() {
		return false
	}
	switch f.Kind {
	case Number:
		if f.Map {
			return l.MatchesScore(m.record.Score(l.Key))
		}
		return f.Number(m.record, l.Key).match(l, m.cancel)
	case Time:
		t := f.Time(m.record)
		return t != 0 && Compare(l.Op, t, l.Time)
	case Boolean:
		b, ok := f.Bool(m.record)
		return ok && b == l.Bool
	case PropertyKey:
		_, ok := m.record.Properties[l.Text]
		return ok
	}
	return m.anyHolds(l) != l.Op.Negative()
}

// anyHolds reports whether any text of the field matches the leaf's value by the leaf's
// operator, or by the operator that this one negates.
func (m *Matcher) anyHolds(l *Leaf) bool {
	if l.Field.Content != 0 && m.content == nil {
		m.content = &none
		if m.load != nil {
			m.content = orNone(m.load())
		}
	}
	if l.Field.body != nil {
		// The text shares the memory of the body, which nothing writes to until
		// the next record.
		s := m.decoded.SearchText(l.Field.body(m.content).Data)
		return l.Op.holds(plugins.View(s), l.Text, m.cancel)
	}
	for s := range l.Field.Texts(m.record, m.content, l.Key) {
		if l.Op.holds(s, l.Text, m.cancel) {
			return true
		}
	}
	return false
}

// MatchesScore reports whether a leaf about a score is true of a record with the score, or of a
// record without.
func (l *Leaf) MatchesScore(score float64, known bool) bool {
	if !known {
		return l.Op == IsNull && l.Bool
	}
	return fractional(score).match(l, nil)
}

// CompareWhole reports whether a leaf about a number is true of n, in the unit of records, or
// of a number that is not known.
func (l *Leaf) CompareWhole(n int64, known bool) bool {
	switch {
	case l.Op == IsNull:
		return known != l.Bool
	case !known:
		return l.Op == NotEquals
	}
	op, to, possible := l.Integer()
	if !possible {
		return op == NotEquals
	}
	return Compare(op, n, to)
}

// Compare reports whether a number or timestamp compares so with the value of a
// leaf.
func Compare[T int64 | float64 | Timestamp](op Operator, a, value T) bool {
	switch op {
	case Equals:
		return a == value
	case NotEquals:
		return a != value
	case GTE:
		return a >= value
	case LTE:
		return a <= value
	case LT:
		return a < value
	case GT:
		return a > value
	}
	return false
}

// Evaluate answers a query from all records there are, in the plainest way: what
// every backend must answer. load returns a record's content, nil when there is
// no content.
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

// Selects reports whether all of a query but its filter is true of a record.
func (q *RequestQuery) Selects(r *Record) bool {
	is := func(want *bool, got bool) bool { return want == nil || *want == got }
	return r.Org == q.Org && is(q.Cached, r.Cached()) && is(q.Scored, r.Scored()) &&
		is(q.Experiment, r.ExperimentID != "")
}

// SortsByContent is true when a sort key needs content.
func (q *RequestQuery) SortsByContent() bool {
	return !q.Random && slices.ContainsFunc(q.Sort, func(s Sort) bool { return s.Key.NeedsContent() })
}
