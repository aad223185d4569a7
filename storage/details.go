package storage

import (
	"net/http"

	"github.com/weirhq/weir/plugins"
)

// Details are totals that cost more to read. Like Totals, they add what is known,
// and attempts that did not answer count for nothing in them.
type Details struct {
	// Errors counts the requests with a status from 400, and those that did not
	// end complete.
	Errors                                          int64
	Input, Output, CacheRead, CacheWrite, Reasoning plugins.Count
	CacheSavings, CacheLoss                         plugins.Cost
	// Latency and TimeToFirstToken are in milliseconds.
	Latency, TimeToFirstToken Percentiles
}

// Percentiles are quantiles, each interpolated linearly between the two values
// around it, and unknown where there are no values.
type Percentiles struct {
	P50 Amount `json:"p50"`
	P95 Amount `json:"p95"`
	P99 Amount `json:"p99"`
}

// percentilesOf orders the values as far as it must: each quantile is sought
// behind the one before.
func percentilesOf[T plugins.Unit | uint32](values []T) (p Percentiles) {
	if len(values) == 0 {
		return p
	}
	from := 0
	for _, q := range []struct {
		Quantile
		to *Amount
	}{{500, &p.P50}, {950, &p.P95}, {990, &p.P99}} {
		var n float64
		n, from = quantileFrom(from, q.Quantile, values)
		*q.to = amount(n)
	}
	return p
}

// detailSums are details with the values that have an order.
type detailSums struct {
	sums             Details
	latencies, ttfts distribution
}

func (s *detailSums) add(r *Row) {
	if r.Attempt {
		return
	}
	d := &s.sums
	if r.Status.Valid && r.Status.N >= http.StatusBadRequest || r.EndState != Complete {
		d.Errors++
	}
	d.Input, d.Output = d.Input.Plus(r.Input), d.Output.Plus(r.Output)
	d.CacheRead, d.CacheWrite = d.CacheRead.Plus(r.CacheRead), d.CacheWrite.Plus(r.CacheWrite)
	d.Reasoning, d.CacheSavings = d.Reasoning.Plus(r.Reasoning), d.CacheSavings.Plus(r.CacheSavings)
	d.CacheLoss = d.CacheLoss.Plus(r.CacheLoss)
	if r.Latency.Valid {
		s.latencies.add(r.Latency.N)
	}
	if r.TimeToFirstToken.Valid {
		s.ttfts.add(r.TimeToFirstToken.N)
	}
}

func (s *detailSums) merge(o *detailSums) {
	d, e := &s.sums, &o.sums
	d.Errors += e.Errors
	d.Input, d.Output = d.Input.Plus(e.Input), d.Output.Plus(e.Output)
	d.CacheRead, d.CacheWrite = d.CacheRead.Plus(e.CacheRead), d.CacheWrite.Plus(e.CacheWrite)
	d.Reasoning, d.CacheSavings = d.Reasoning.Plus(e.Reasoning), d.CacheSavings.Plus(e.CacheSavings)
	d.CacheLoss = d.CacheLoss.Plus(e.CacheLoss)
	s.latencies.merge(&o.latencies)
	s.ttfts.merge(&o.ttfts)
}

// answer are the details, nil if the query does not ask for them.
func (s *detailSums) answer(q *GroupQuery) *Details {
	if !q.Details {
		return nil
	}
	s.sums.Latency, s.sums.TimeToFirstToken = s.latencies.percentiles(), s.ttfts.percentiles()
	return &s.sums
}
