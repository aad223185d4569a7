package storage

import (
	"math/bits"
	"slices"
	"strconv"

	"github.com/weirhq/weir/plugins"
)

// Series says what a query over time makes of the values of users or sessions.
type Series struct {
	// Quantile is what a bucket tells of its values. The zero Quantile is the
	// least of them; use DefaultQuantile.
	Quantile Quantile
	// Interquartile first drops what is outside the 25th to 75th percentile of
	// the measure over the window; the bounds stay.
	Interquartile bool
	// Distribution answers a histogram over the values in place of time.
	Distribution bool
}

// Point is one bucket of a series.
type Point struct {
	// RangeStart and RangeEnd are timestamps; in a histogram, numbers. The end
	// is the start of the next bucket.
	RangeStart string `json:"range_start"`
	RangeEnd   string `json:"range_end"`
	// Value is 0 where nothing is in the bucket, and unknown where nothing of
	// what is in it is known; in a histogram, the number of values.
	Value Amount `json:"value"`
	// RequestsWithoutCost counts the requests whose cost Value lacks.
	RequestsWithoutCost int64 `json:"requests_without_cost,omitempty"`
}

// sample is one measure of one user or session. Values are whole, so that sums
// do not depend on their order.
type sample[T plugins.Unit] struct {
	group, bucket int
	value         plugins.Quantity[T]
	withoutCost   int64
}

// quartiles drops the samples which the query does not want. Those whose value
// is unknown are in no quartile and stay.
func quartiles[T plugins.Unit](s *Series, samples []sample[T], p *CancelCheck) []sample[T] {
	if !s.Interquartile || p.over(stepsBetweenChecks) {
		return samples
	}
	values := known(samples)
	if len(values) == 0 {
		return samples
	}
	low, high := quantile(250, values), quantile(750, values)
	return slices.DeleteFunc(samples, func(s sample[T]) bool {
		return s.value.Valid && (float64(s.value.N) < low || float64(s.value.N) > high)
	})
}

// known are the values that are.
func known[T plugins.Unit](samples []sample[T]) (values []T) {
	for _, s := range samples {
		if s.value.Valid {
			values = append(values, s.value.N)
		}
	}
	return values
}

// unit is how many of T make 1 in a series, which has dollars and seconds.
func unit[T plugins.Unit]() float64 {
	switch any(T(0)).(type) {
	case plugins.Nanodollars:
		return 1e9
	case plugins.Milliseconds:
		return 1e3
	}
	return 1
}

// points are the quantiles by bucket, or the histogram.
func points[T plugins.Unit](s *Series, b Buckets, samples []sample[T], p *CancelCheck) []Point {
	if p.over(stepsBetweenChecks) {
		return nil
	}
	if s.Distribution {
		return histogram(samples)
	}
	points := make([]Point, b.Len)
	there, values := make([]bool, b.Len), make([][]T, b.Len)
	for _, s := range samples {
		i := s.bucket
		there[i] = true
		points[i].RequestsWithoutCost += s.withoutCost
		if s.value.Valid {
			values[i] = append(values[i], s.value.N)
		}
	}
	for i := range points {
		point := &points[i]
		start, end := b.Bounds(i)
		point.RangeStart, point.RangeEnd = start.String(), end.String()
		switch {
		case !there[i]:
			point.Value = amount(0)
		case len(values[i]) > 0:
			point.Value = amount(quantile(s.Quantile, values[i]) / unit[T]())
		}
	}
	return points
}

// maxBins bounds the buckets of a histogram.
const maxBins = 10

// histogram counts the known values in even bins from the least to the largest,
// both included; a single bin if all are equal.
func histogram[T plugins.Unit](samples []sample[T]) []Point {
	values := known(samples)
	if len(values) == 0 {
		return []Point{}
	}
	least, most := slices.Min(values), slices.Max(values)
	span := uint64(most - least)
	bins := make([]Point, 1+min(maxBins-1, span))
	bound := func(i int) string {
		b := float64(least) + float64(span)*(float64(i)/float64(len(bins)))
		return strconv.FormatFloat(b/unit[T](), 'f', -1, 64)
	}
	for i := range bins {
		bins[i] = Point{RangeStart: bound(i), RangeEnd: bound(i + 1), Value: amount(0)}
	}
	for _, s := range samples {
		if !s.value.Valid {
			continue
		}
		bin := len(bins) - 1
		if s.value.N < most {
			high, low := bits.Mul64(uint64(s.value.N-least), uint64(len(bins)))
			place, _ := bits.Div64(high, low, span)
			bin = int(place)
		}
		bins[bin].Value.N++
		bins[bin].RequestsWithoutCost += s.withoutCost
	}
	return bins
}

// average is the mean of the known values.
func average[T plugins.Unit](samples []sample[T]) [1]Average {
	var sum T
	var n int64
	for _, s := range samples {
		if s.value.Valid {
			sum += s.value.N
			n++
		}
	}
	a := mean(sum, n)
	a.N /= unit[T]()
	return [1]Average{{a}}
}
