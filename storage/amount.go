package storage

import (
	"encoding/json"
	"math"

	"github.com/weirhq/weir/plugins"
)

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

// mean is the sum of n values over n, unknown when there are none.
func mean[T plugins.Unit](sum T, n int64) Amount {
	if n == 0 {
		return Amount{}
	}
	return amount(float64(sum) / float64(n))
}
