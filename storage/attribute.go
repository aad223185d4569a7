package storage

import (
	"cmp"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// attribute is one thing that is known of a user or session: a text, or a
// number, which may be a Timestamp.
type attribute struct {
	text   string
	number Amount
}

func textual(s string) attribute    { return attribute{text: s} }
func numeric(a Amount) attribute    { return attribute{number: a} }
func whole[T ~int64](n T) attribute { return numeric(amount(float64(n))) }
func quantity[T plugins.Unit](q plugins.Quantity[T]) attribute {
	return numeric(Amount{N: q.Float(), Valid: q.Valid})
}

// match compares as leaves about requests do: what lacks a number matches
// not-equals alone.
func (a attribute) match(l *Leaf, p *CancelCheck) bool {
	switch l.Field.Kind {
	case Number:
		return l.CompareNumber(a.number.N, a.number.Valid)
	case Time:
		return a.number.Valid && Compare(l.Op, a.number.N, float64(l.Time))
	}
	return l.Op.holds(a.text, l.Text, p) != l.Op.Negative()
}

// compare is the order of a sort key: what lacks the value comes last in both
// directions.
func (a attribute) compare(b attribute, desc bool) int {
	switch known, other := a.known(), b.known(); {
	case !known && !other:
		return 0
	case !other:
		return -1
	case !known:
		return 1
	}
	return directed(cmp.Or(cmp.Compare(a.number.N, b.number.N), strings.Compare(a.text, b.text)), desc)
}

func (a attribute) known() bool { return a.number.Valid || a.text != "" }
