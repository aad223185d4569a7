package plugins

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Nanodollars are billionths of a US dollar.
type Nanodollars int64

// Milliseconds are a length of time.
type Milliseconds int64

// Unit is what a Quantity is a number of; int64 has no unit.
type Unit interface {
	int64 | Nanodollars | Milliseconds
}

// Quantity is a whole number of one unit that may be unknown. The zero Quantity
// is unknown, which is never the same as a known 0.
type Quantity[T Unit] struct {
	N     T
	Valid bool
}

type (
	// Count is a number without a unit: of tokens, or a status code.
	Count = Quantity[int64]
	// Cost is an amount of money. In JSON it is in US dollars.
	Cost = Quantity[Nanodollars]
	// Duration is a length of time. In JSON it is in milliseconds.
	Duration = Quantity[Milliseconds]
)

// Known is the Count n.
func Known(n int64) Count { return Count{N: n, Valid: true} }

// KnownCost is the Cost n.
func KnownCost(n Nanodollars) Cost { return Cost{N: n, Valid: true} }

// KnownDuration is the Duration d, without fractions of a millisecond.
func KnownDuration(d time.Duration) Duration {
	return Duration{N: Milliseconds(d.Milliseconds()), Valid: true}
}

// Or is q, or other where q is unknown.
func (q Quantity[T]) Or(other Quantity[T]) Quantity[T] {
	if q.Valid {
		return q
	}
	return other
}

// Larger is the larger quantity, or the known one.
func (q Quantity[T]) Larger(other Quantity[T]) Quantity[T] {
	if !q.Valid || other.Valid && other.N > q.N {
		return other
	}
	return q
}

// Plus returns the sum; an unknown quantity counts as 0, but the sum of two unknown
// ones is unknown. A sum too large for the type is the largest or the least number of
// the type: a caller may report any count of tokens.
func (q Quantity[T]) Plus(other Quantity[T]) Quantity[T] {
	sum := q.N + other.N
	switch {
	case q.N > 0 && other.N > 0 && sum < 0:
		sum = math.MaxInt64
	case q.N < 0 && other.N < 0 && sum >= 0:
		sum = math.MinInt64
	}
	return Quantity[T]{N: sum, Valid: q.Valid || other.Valid}
}

// Both returns the sum, which is unknown if either quantity is.
func (q Quantity[T]) Both(other Quantity[T]) Quantity[T] {
	if !q.Valid || !other.Valid {
		return Quantity[T]{}
	}
	return q.Plus(other)
}

// Float returns the number that JSON has, 0 if it is unknown.
func (q Quantity[T]) Float() float64 {
	if money, ok := any(q.N).(Nanodollars); ok {
		return money.Dollars()
	}
	return float64(q.N)
}

// Value is the number that JSON has: an int64, a float64 of dollars, or nil
// if it is unknown.
func (q Quantity[T]) Value() any {
	if !q.Valid {
		return nil
	}
	if money, ok := any(q.N).(Nanodollars); ok {
		return money.Dollars()
	}
	return int64(q.N)
}

// MarshalJSON writes an exact decimal, or null when the number is unknown.
func (q Quantity[T]) MarshalJSON() ([]byte, error) { return q.AppendJSON(nil), nil }

// AppendJSON appends what MarshalJSON writes to b.
func (q Quantity[T]) AppendJSON(b []byte) []byte {
	if !q.Valid {
		return append(b, "null"...)
	}
	if money, ok := any(q.N).(Nanodollars); ok {
		return append(b, bytes.TrimRight(bytes.TrimRight(money.appendDecimal(nil), "0"), ".")...)
	}
	return strconv.AppendInt(b, int64(q.N), 10)
}

// Dollars is n in US dollars.
func (n Nanodollars) Dollars() float64 { return float64(n) / nanodollarsPerDollar }

const nanodollarsPerDollar = 1_000_000_000

// appendDecimal appends n in US dollars with nine decimals.
func (n Nanodollars) appendDecimal(b []byte) []byte {
	sign, size := "", uint64(n)
	if n < 0 {
		sign, size = "-", -size
	}
	return fmt.Appendf(b, "%s%d.%09d", sign, size/nanodollarsPerDollar, size%nanodollarsPerDollar)
}

// String writes n exactly, with at least six decimals, so that most amounts
// align: $0.000021.
func (n Nanodollars) String() string {
	text := string(n.appendDecimal([]byte{'$'}))
	if n < 0 {
		text = "-$" + text[2:]
	}
	for range 3 {
		text = strings.TrimSuffix(text, "0")
	}
	return text
}

// String writes n as 850ms, 1.25s or 2m5s.
func (n Milliseconds) String() string {
	d := time.Duration(n) * time.Millisecond
	switch {
	case d < time.Second:
		return fmt.Sprintf("%dms", int64(n))
	case d < time.Minute:
		return fmt.Sprintf("%.2fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}
