package storage

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"github.com/weirhq/weir/plugins"
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

// quantile interpolates linearly between the two values around q. It orders
// values as far as it must; there must be some.
func quantile[T plugins.Unit](q Quantile, values []T) float64 {
	n, _ := quantileFrom(0, q, values)
	return n
}

// quantileFrom looks for a quantile behind so many values, which are the least ones,
// and tells behind how many it is then.
func quantileFrom[T plugins.Unit | uint32](from int, q Quantile, values []T) (n float64, at int) {
	place := int(q) * (len(values) - 1)
	at = place / 1000
	selectNth(values[from:], at-from)
	low := float64(values[at])
	if place%1000 == 0 {
		return low, at
	}
	high := float64(slices.Min(values[at+1:]))
	return low + (high-low)*float64(place%1000)/1000, at
}

// selectNth puts at a place the value that a sort would, less ones before it and
// greater ones behind: Hoare's selection, which looks at all values a few times.
func selectNth[T plugins.Unit | uint32](values []T, place int) {
	for tries := bits.Len(uint(len(values))); len(values) > 16 && tries > 0; tries-- {
		a, b, c := values[0], values[len(values)/2], values[len(values)-1]
		pivot := max(min(a, b), min(max(a, b), c)) // the middle one
		i, j := 0, len(values)-1
		for i <= j {
			for values[i] < pivot {
				i++
			}
			for values[j] > pivot {
				j--
			}
			if i <= j {
				values[i], values[j] = values[j], values[i]
				i++
				j--
			}
		}
		switch {
		case place <= j:
			values = values[:j+1]
		case place >= i:
			values, place = values[i:], place-i
		default:
			return
		}
	}
	slices.Sort(values)
}
