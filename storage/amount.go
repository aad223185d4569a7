package storage

import (
	"encoding/json"
	"math"

	"github.com/weirhq/weir/plugins"
)

// Amount is a number that may be unknown: a plugins.Count that need not be
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

// scaled is a count in a larger unit, of which it takes unit.
func scaled(c plugins.Count, unit float64) Amount {
	if !c.Valid {
		return Amount{}
	}
	return amount(float64(c.N) / unit)
}

// mean is the sum of n values over n, unknown when there are none.
func mean(sum, n int64) Amount {
	if n == 0 {
		return Amount{}
	}
	return amount(float64(sum) / float64(n))
}

// Units of counts in what answers say.
const (
	nanosPerDollar  = 1e9
	millisPerSecond = 1e3
	one             = 1
)
