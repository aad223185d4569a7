package storage

import (
	"fmt"
	"iter"
	"maps"
	"math/bits"
	"slices"
	"strconv"

	"github.com/weirhq/weir/plugins"
)

// Series are the options of a query that summarises the values of users or sessions over time.
type Series struct {
	// Quantile is the quantile that a bucket has as its value. The zero Quantile is the
	// smallest value, not the default: that is DefaultQuantile.
	Quantile Quantile
	// Interquartile first drops the values below the 25th and above the 75th percentile of
	// the window. Values on these bounds stay.
	Interquartile bool
	// Distribution makes a histogram of the values, in place of a series over time.
	Distribution bool
}

// Point is one bucket of a series.
type Point struct {
	// RangeStart and RangeEnd are timestamps, or values in a histogram. RangeEnd is the
	// RangeStart of the next bucket.
	RangeStart string `json:"range_start"`
	RangeEnd   string `json:"range_end"`
	// Value is 0 if the bucket has no samples, and unknown if it has only samples with unknown
	// values. In a histogram it is the number of values.
	Value Amount `json:"value"`
	// RequestsWithoutCost counts the requests of unknown cost, which Value leaves out.
	RequestsWithoutCost int64 `json:"requests_without_cost,omitempty"`
}

// sample is one measure of one user or session. Values are integers, so that sums
// do not depend on their order.
type sample[T plugins.Unit] struct {
	group, bucket int
	value         plugins.Quantity[T]
	withoutCost   int64
}

// samples are computed again at each iteration: there are too many users and sessions to keep
// their samples.
type samples[T plugins.Unit] = iter.Seq[sample[T]]

// sampleSteps is roughly the number of steps of a CancelCheck that a sample costs.
const sampleSteps = 16

// measureAll returns a sample of each user or session of a list.
func measureAll[M any, T plugins.Unit](groups *list[M], p *CancelCheck, measure func(*M) sample[T]) samples[T] {
	return func(yield func(sample[T]) bool) {
		for i, m := range groups.all() {
			if p.over(sampleSteps) {
				return
			}
			s := measure(m)
			s.group = i
			if !yield(s) {
				return
			}
		}
	}
}

// dropOutliers drops the samples outside the interquartile range, if the query wants that. Samples
// with an unknown value stay.
func dropOutliers[T plugins.Unit](s *Series, all samples[T], p *CancelCheck) samples[T] {
	if !s.Interquartile || p.over(stepsBetweenChecks) {
		return all
	}
	values := knownValues(all)
	if len(values) == 0 {
		return all
	}
	low, high := quantile(250, values), quantile(750, values)
	return func(yield func(sample[T]) bool) {
		for s := range all {
			if s.value.Valid && (float64(s.value.N) < low || float64(s.value.N) > high) {
				continue
			}
			if !yield(s) {
				return
			}
		}
	}
}

// knownValues returns the values of the samples that have a known one.
func knownValues[T plugins.Unit](all samples[T]) []T {
	n := 0
	for s := range all {
		if s.value.Valid {
			n++
		}
	}
	values := make([]T, 0, n)
	for s := range all {
		if s.value.Valid {
			values = append(values, s.value.N)
		}
	}
	return values
}

// unit returns how many T make one dollar, one second or one piece of a series.
func unit[T plugins.Unit]() float64 {
	switch any(T(0)).(type) {
	case plugins.Nanodollars:
		return 1e9
	case plugins.Milliseconds:
		return 1e3
	}
	return 1
}

// points returns the quantiles by bucket, or the histogram.
func points[T plugins.Unit](s *Series, b Buckets, all samples[T], p *CancelCheck) []Point {
	if p.over(stepsBetweenChecks) {
		return nil
	}
	if s.Distribution {
		return histogram(all)
	}
	points := make([]Point, b.Len)
	hasSamples, counts := make([]bool, b.Len), make([]int, b.Len)
	for s := range all {
		hasSamples[s.bucket] = true
		points[s.bucket].RequestsWithoutCost += s.withoutCost
		if s.value.Valid {
			counts[s.bucket]++
		}
	}
	values := make([][]T, b.Len)
	for i, n := range counts {
		values[i] = make([]T, 0, n)
	}
	for s := range all {
		if s.value.Valid {
			values[s.bucket] = append(values[s.bucket], s.value.N)
		}
	}
	for i := range points {
		point := &points[i]
		start, end := b.Bounds(i)
		point.RangeStart, point.RangeEnd = start.String(), end.String()
		switch {
		case !hasSamples[i]:
			point.Value = amount(0)
		case len(values[i]) > 0:
			point.Value = amount(quantile(s.Quantile, values[i]) / unit[T]())
		}
	}
	return points
}

// maxBins bounds the buckets of a histogram.
const maxBins = 10

// histogram counts the known values in bins of equal width from the smallest value to the
// largest, both included. There is one bin if all values are equal.
func histogram[T plugins.Unit](all samples[T]) []Point {
	var low, high T
	n := 0
	for s := range all {
		if !s.value.Valid {
			continue
		}
		if n++; n == 1 {
			low, high = s.value.N, s.value.N
		}
		low, high = min(low, s.value.N), max(high, s.value.N)
	}
	if n == 0 {
		return []Point{}
	}
	span := uint64(high - low)
	bins := make([]Point, 1+min(maxBins-1, span))
	bound := func(i int) string {
		b := float64(low) + float64(span)*(float64(i)/float64(len(bins)))
		return strconv.FormatFloat(b/unit[T](), 'f', -1, 64)
	}
	for i := range bins {
		bins[i] = Point{RangeStart: bound(i), RangeEnd: bound(i + 1), Value: amount(0)}
	}
	for s := range all {
		if !s.value.Valid {
			continue
		}
		bin := len(bins) - 1
		if s.value.N < high {
			hi, lo := bits.Mul64(uint64(s.value.N-low), uint64(len(bins)))
			place, _ := bits.Div64(hi, lo, span)
			bin = int(place)
		}
		bins[bin].Value.N++
		bins[bin].RequestsWithoutCost += s.withoutCost
	}
	return bins
}

// average is the mean of the known values.
func average[T plugins.Unit](all samples[T]) [1]Average {
	var sum T
	var n int64
	for s := range all {
		if s.value.Valid {
			sum += s.value.N
			n++
		}
	}
	a := mean(sum, n)
	a.N /= unit[T]()
	return [1]Average{{a}}
}

// Quantile is a quantile in thousandths, as an integer so that it is exact.
type Quantile int

// DefaultQuantile is the third quartile.
const DefaultQuantile Quantile = 750

var quantileNames = map[string]Quantile{"p50": 500, "p75": 750, "p95": 950, "p99": 990, "p99.9": 999}

// ParseQuantile reads the name of a quantile, such as p99.9.
func ParseQuantile(name string) (Quantile, error) {
	q, ok := quantileNames[name]
	if !ok {
		return 0, fmt.Errorf("one of %s is expected, not %s", join(slices.Sorted(maps.Keys(quantileNames))), quote(name))
	}
	return q, nil
}

// quantile interpolates linearly between the two values around q. It reorders values, which
// must not be empty.
func quantile[T plugins.Unit](q Quantile, values []T) float64 {
	n, _ := quantileFrom(0, q, values)
	return n
}

// quantileFrom is quantile for values whose first from are already the smallest ones. It also
// returns the index of the quantile: the values before that index are now the smallest ones.
func quantileFrom[T plugins.Unit](from int, q Quantile, values []T) (n float64, at int) {
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

// selectNth moves to an index the value that a sort would put there, with smaller values before it
// and greater values after it. It is Hoare's selection (quickselect), and sorts what is left if
// bad pivots make that slow.
func selectNth[T plugins.Unit](values []T, place int) {
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
