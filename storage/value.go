package storage

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// Value is what a query sorts by, or a leaf compares, of one row: a whole number,
// which may be a Timestamp, a real number, or a text. The zero Value is missing.
type Value struct {
	kind valueKind
	// number is a whole number, or the bits of a real number.
	number int64
	text   string
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

func integer[T ~int64](n T) Value { return Value{kind: wholeNumber, number: int64(n)} }

func fractional(n float64) Value { return Value{kind: realNumber, number: int64(math.Float64bits(n))} }

// float is a real number.
func (v Value) float() float64 { return math.Float64frombits(uint64(v.number)) }

func numeric(a Amount) Value {
	if !a.Valid {
		return Value{}
	}
	return fractional(a.N)
}

// Any is the value as an int64, a float64 or a string, nil when it is missing.
func (v Value) Any() any {
	switch v.kind {
	case wholeNumber:
		return v.number
	case realNumber:
		return v.float()
	case someText:
		return v.text
	}
	return nil
}

// match reports whether the value matches a leaf. A missing number matches only not-equals
// and is-null.
func (v Value) match(l *Leaf, cancel *CancelCheck) bool {
	switch l.Field.Kind {
	case Number:
		if v.kind == realNumber && l.Op != IsNull {
			return Compare(l.Op, v.float(), l.Number.real)
		}
		return l.CompareWhole(v.number, v.kind != missing)
	case Time:
		return v.kind != missing && Compare(l.Op, Timestamp(v.number), l.Time)
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
	order := cmp.Compare(v.kind, w.kind) // values of a sort key are of the same kind
	if order == 0 {
		switch v.kind {
		case wholeNumber:
			order = cmp.Compare(v.number, w.number)
		case realNumber:
			order = cmp.Compare(v.float(), w.float())
		default:
			order = strings.Compare(v.text, w.text)
		}
	}
	return directed(order, desc)
}

func directed(order int, desc bool) int {
	if desc {
		return -order
	}
	return order
}

// Amount is a number that may be unknown: a plugins.Quantity that need not be
// whole. The zero Amount is unknown, in JSON null.
type Amount struct {
	N     float64
	Valid bool
}

// MarshalJSON writes the number, or null when it is unknown.
func (a Amount) MarshalJSON() ([]byte, error) {
	if !a.Valid {
		return []byte("null"), nil
	}
	return json.Marshal(a.N)
}

// amount is a known number. What overflowed is unknown: JSON has no infinity.
func amount(n float64) Amount {
	if math.IsInf(n, 0) || math.IsNaN(n) {
		return Amount{}
	}
	return Amount{N: n, Valid: true}
}

// mean is the sum of n values divided by n, unknown when n is 0.
func mean[T plugins.Unit](sum T, n int64) Amount {
	if n == 0 {
		return Amount{}
	}
	return amount(float64(sum) / float64(n))
}
