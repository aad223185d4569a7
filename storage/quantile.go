package storage

import (
	"fmt"
	"maps"
	"slices"
)

// Quantile is a share of the values in thousandths, so that it is exact.
type Quantile int

// DefaultQuantile is the third quartile.
const DefaultQuantile Quantile = 750

var quantileNames = map[string]Quantile{"p50": 500, "p75": 750, "p95": 950, "p99": 990, "p99.9": 999}

// ParseQuantile reads a pSize, such as p99.9.
func ParseQuantile(pSize string) (Quantile, error) {
	q, ok := quantileNames[pSize]
	if !ok {
		return 0, fmt.Errorf("one of %s is expected, not %s", join(slices.Sorted(maps.Keys(quantileNames))), quote(pSize))
	}
	return q, nil
}

// of interpolates linearly between the two values around the quantile. sorted
// must not be empty.
func (q Quantile) of(sorted []int64) float64 {
	place := int(q) * (len(sorted) - 1)
	low := float64(sorted[place/1000])
	if place%1000 == 0 {
		return low
	}
	high := float64(sorted[place/1000+1])
	return low + (high-low)*float64(place%1000)/1000
}
