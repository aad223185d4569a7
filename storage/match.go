package storage

import (
	"unsafe"

	"github.com/weirhq/weir/plugins/transcript"
)

// Match tells whether a filter is true of a record. It is the meaning of the
// filter language: every backend answers as if it called Match.
//
// load returns the record's content, nil when there is none. It is called once
// at most, and only for a leaf that compares content.
func Match(f Filter, r *Record, load func() *Content) bool {
	m := Matcher{Filter: f}
	return m.Match(r, load)
}

// Matcher matches one record after the other, in memory that it keeps.
type Matcher struct {
	Filter Filter
	// Patience is over when the query is: what Match answers then is worth
	// nothing.
	Patience *CancelCheck

	record  *Record
	load    func() *Content
	content *Content
	decoded transcript.Unescaper
}

// Match is Match(m.Filter, r, load).
func (m *Matcher) Match(r *Record, load func() *Content) bool {
	m.record, m.load, m.content = r, load, nil
	return m.match(m.Filter)
}

func (m *Matcher) match(f Filter) bool {
	switch f := f.(type) {
	case *Branch:
		if f.Or {
			return m.match(f.Left) || m.match(f.Right)
		}
		return m.match(f.Left) && m.match(f.Right)
	case *Leaf:
		return m.matchLeaf(f)
	}
	return true
}

func (m *Matcher) matchLeaf(l *Leaf) bool {
	f := l.Field
	if !f.Applies() {
		return false
	}
	switch f.Kind {
	case Number:
		n, ok := f.Number(m.record, l.Key)
		if !ok {
			return l.Op == NotEquals && !f.Map
		}
		return Compare(l.Op, n, l.Number)
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

// anyHolds tells whether any text of the field matches the leaf's value by its
// operator, or by the operator that it negates.
func (m *Matcher) anyHolds(l *Leaf) bool {
	if l.Field.Content != 0 && m.content == nil {
		m.content = orNone(m.load())
	}
	if l.Field.body != nil {
		// The text shares the memory of the body, which nothing writes to until
		// the next record.
		s := m.decoded.SearchText(l.Field.body(m.content).Data)
		return l.Op.holds(unsafe.String(unsafe.SliceData(s), len(s)), l.Text, m.Patience)
	}
	for s := range l.Field.Texts(m.record, m.content, l.Key) {
		if l.Op.holds(s, l.Text, m.Patience) {
			return true
		}
	}
	return false
}

// Compare tells whether a number or timestamp compares so with the value of a
// leaf.
func Compare[T float64 | Timestamp](op Operator, a, value T) bool {
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
