package storage

import (
	"net/http"

	"github.com/weirhq/weir/plugins"
)

// Counts are requests and what they cost. Attempts that did not answer only
// cost: without an answering request there is no user and no session.
type Counts struct {
	Requests int64
	// WithoutCost counts the requests and attempts that Cost lacks.
	WithoutCost int64
	Cost        plugins.Cost
}

func (t *Counts) add(b *RowBatch, i int) {
	t.Cost = t.Cost.Plus(b.Cost[i])
	if !b.Cost[i].Valid {
		t.WithoutCost++
	}
	if !b.Attempt[i] {
		t.Requests++
	}
}

func (t *Counts) merge(o *Counts) {
	t.Requests, t.WithoutCost, t.Cost = t.Requests+o.Requests, t.WithoutCost+o.WithoutCost, t.Cost.Plus(o.Cost)
}

// empty is true without a request or attempt.
func (c *Counts) empty() bool { return c.Requests == 0 && c.WithoutCost == 0 && !c.Cost.Valid }

// Totals are what the requests of one group add up to. Sums add what is known.
type Totals struct {
	Counts
	First, Last Timestamp // when the first and the last request began
	Ended       Timestamp // when the last answer ended, 0 without answers

	Input, Output plugins.Count
	WithTokens    int64                // requests whose input or output is known
	Latency       plugins.Milliseconds // sum of the known latencies
	WithLatency   int64                // requests whose latency is known
	RateLimited   int64                // requests with the status 429
}

// addTotals adds each row of a batch to its totals, nil for a row that is left out, and makes the
// totals of attempts nil. A loop for a few fields at a time lets the processor wait for the memory
// of many groups at once.
func addTotals(totals []*Totals, b *RowBatch) {
	for i, t := range totals {
		if t == nil {
			continue
		}
		t.Counts.add(b, i)
		if b.Attempt[i] {
			totals[i] = nil
			continue
		}
		at := b.CreatedAt[i]
		if t.Requests == 1 {
			t.First, t.Last = at, at
		}
		t.First, t.Last, t.Ended = min(t.First, at), max(t.Last, at), max(t.Ended, b.RespondedAt[i])
	}
	for i, t := range totals {
		if t == nil {
			continue
		}
		input, output := b.Input[i], b.Output[i]
		t.Input, t.Output = t.Input.Plus(input), t.Output.Plus(output)
		if input.Valid || output.Valid {
			t.WithTokens++
		}
	}
	for i, t := range totals {
		if t == nil {
			continue
		}
		if l := b.Latency[i]; l.Valid {
			t.Latency += l.N
			t.WithLatency++
		}
		if b.Status[i] == plugins.Known(http.StatusTooManyRequests) {
			t.RateLimited++
		}
	}
}

// merge adds what other requests add up to.
func (t *Totals) merge(o *Totals) {
	if t.Requests == 0 {
		t.First, t.Last = o.First, o.Last
	}
	if o.Requests > 0 {
		t.First, t.Last = min(t.First, o.First), max(t.Last, o.Last)
	}
	t.Ended = max(t.Ended, o.Ended)
	t.Counts.merge(&o.Counts)
	t.Input, t.Output = t.Input.Plus(o.Input), t.Output.Plus(o.Output)
	t.WithTokens, t.WithLatency, t.RateLimited = t.WithTokens+o.WithTokens, t.WithLatency+o.WithLatency, t.RateLimited+o.RateLimited
	t.Latency += o.Latency
}

// tokens are input and output together.
func (t *Totals) tokens() plugins.Count { return t.Input.Plus(t.Output) }

// duration is the time from the start of the first request to the end of the
// last answer.
func (t *Totals) duration() plugins.Duration {
	if t.Ended == 0 {
		return plugins.Duration{}
	}
	return plugins.Duration{N: plugins.Milliseconds(t.Ended - t.First), Valid: true}
}

// never is the window that contains no moment; include widens it.
var never = Window{From: Always.To, To: Always.From}

// include is the least window that contains w and a moment.
func (w Window) include(t Timestamp) Window { return Window{From: min(w.From, t), To: max(w.To, t)} }

// Details are totals that cost more to read. Like Totals, they add what is known.
// Attempts that did not answer do not count in them.
type Details struct {
	// Errors counts the requests with a status from 400, and those that did not
	// end complete.
	Errors                                          int64
	Input, Output, CacheRead, CacheWrite, Reasoning plugins.Count
	CacheSavings, CacheLoss                         plugins.Cost
	// AnswerCacheHits counts the requests that Weir's cache answered.
	AnswerCacheHits           int64
	SavedCost, RoutingSavings plugins.Cost
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
// after the quantile before.
func percentilesOf[T plugins.Unit](values []T) (p Percentiles) {
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

// add adds all but the Percentiles.
func (d *Details) add(b *RowBatch, i int) {
	if b.Attempt[i] {
		return
	}
	if b.Status[i].Valid && b.Status[i].N >= http.StatusBadRequest || b.EndState[i] != Complete {
		d.Errors++
	}
	d.Input, d.Output = d.Input.Plus(b.Input[i]), d.Output.Plus(b.Output[i])
	addKnown(&d.CacheRead, b.CacheRead, i)
	addKnown(&d.CacheWrite, b.CacheWrite, i)
	addKnown(&d.Reasoning, b.Reasoning, i)
	addKnown(&d.CacheSavings, b.CacheSavings, i)
	addKnown(&d.CacheLoss, b.CacheLoss, i)
	addKnown(&d.SavedCost, b.SavedCost, i)
	addKnown(&d.RoutingSavings, b.RoutingSavings, i)
	if b.Cached[i] {
		d.AnswerCacheHits++
	}
}

// addKnown adds what a row of a batch has, which no row has if there are no values.
func addKnown[T plugins.Unit](sum *plugins.Quantity[T], values []plugins.Quantity[T], i int) {
	if len(values) > 0 && values[i].Valid {
		*sum = sum.Plus(values[i])
	}
}

func (s *detailSums) add(b *RowBatch, i int) {
	s.sums.add(b, i)
	if b.Attempt[i] {
		return
	}
	if b.Latency[i].Valid {
		s.latencies.add(b.Latency[i].N)
	}
	if len(b.TimeToFirstToken) > 0 && b.TimeToFirstToken[i].Valid {
		s.ttfts.add(b.TimeToFirstToken[i].N)
	}
}

func (s *detailSums) merge(o *detailSums) {
	d, e := &s.sums, &o.sums
	d.Errors += e.Errors
	d.Input, d.Output = d.Input.Plus(e.Input), d.Output.Plus(e.Output)
	d.CacheRead, d.CacheWrite = d.CacheRead.Plus(e.CacheRead), d.CacheWrite.Plus(e.CacheWrite)
	d.Reasoning, d.CacheSavings = d.Reasoning.Plus(e.Reasoning), d.CacheSavings.Plus(e.CacheSavings)
	d.CacheLoss, d.AnswerCacheHits = d.CacheLoss.Plus(e.CacheLoss), d.AnswerCacheHits+e.AnswerCacheHits
	d.SavedCost, d.RoutingSavings = d.SavedCost.Plus(e.SavedCost), d.RoutingSavings.Plus(e.RoutingSavings)
	s.latencies.merge(&o.latencies)
	s.ttfts.merge(&o.ttfts)
}

// answer returns the details, nil if the query does not ask for details.
func (s *detailSums) answer(q *GroupQuery) *Details {
	if !q.Details {
		return nil
	}
	d := s.sums // the room of the sums is used again
	d.Latency, d.TimeToFirstToken = s.latencies.percentiles(), s.ttfts.percentiles()
	return &d
}
