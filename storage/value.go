package storage

import (
	"cmp"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// Value is what a query sorts by, or a leaf compares, of one row: a whole number,
// which may be a Timestamp, a real number, or a text. The zero Value is missing.
type Value struct {
	kind  valueKind
	whole int64
	real  float64
	text  string
}

type valueKind uint8

const (
	missing valueKind = iota
	wholeNumber
	realNumber
	someText
)

func textual(s string) Value {
	if s == "" {
		return Value{}
	}
	return Value{kind: someText, text: s}
}

func whole[T ~int64](n T) Value { return Value{kind: wholeNumber, whole: int64(n)} }

func numeric(a Amount) Value {
	if !a.Valid {
		return Value{}
	}
	return Value{kind: realNumber, real: a.N}
}

// quantity is in the unit of answers, in which leaves compare it.
func quantity[T plugins.Unit](q plugins.Quantity[T]) Value {
	return numeric(Amount{N: q.Float(), Valid: q.Valid})
}

// Any is the value as an int64, a float64 or a string, nil when it is missing.
func (v Value) Any() any {
	switch v.kind {
	case wholeNumber:
		return v.whole
	case realNumber:
		return v.real
	case someText:
		return v.text
	}
	return nil
}

// match compares as leaves about requests do: a missing number matches not-equals
// and is-null alone.
func (v Value) match(l *Leaf, cancel *CancelCheck) bool {
	switch l.Field.Kind {
	case Number:
		return l.CompareNumber(v.real+float64(v.whole), v.kind != missing)
	case Time:
		return v.kind != missing && Compare(l.Op, Timestamp(v.whole), l.Time)
	}
	return l.Op.holds(v.text, l.Text, cancel) != l.Op.Negative()
}

// compare is the order of a sort key: missing values come last in both directions.
func (v Value) compare(w Value, desc bool) int {
	switch {
	case v.kind == missing && w.kind == missing:
		return 0
	case w.kind == missing:
		return -1
	case v.kind == missing:
		return 1
	}
	return directed(cmp.Or(cmp.Compare(v.whole, w.whole), cmp.Compare(v.real, w.real), strings.Compare(v.text, w.text)), desc)
}

func directed(order int, desc bool) int {
	if desc {
		return -order
	}
	return order
}
