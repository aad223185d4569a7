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

func (t *Counts) add(r *Row) {
	t.Cost = t.Cost.Plus(r.Cost)
	if !r.Cost.Valid {
		t.WithoutCost++
	}
	if !r.Attempt {
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
	Ended       Timestamp // when the last answer ended, 0 without any

	Input, Output plugins.Count
	WithTokens    int64                // requests whose input or output is known
	Latency       plugins.Milliseconds // all together
	WithLatency   int64                // requests whose latency is known
	RateLimited   int64                // requests with the status 429
}

func (t *Totals) add(r *Row) {
	t.Counts.add(r)
	if r.Attempt {
		return
	}
	if t.Requests == 1 {
		t.First, t.Last = r.CreatedAt, r.CreatedAt
	}
	t.First, t.Last = min(t.First, r.CreatedAt), max(t.Last, r.CreatedAt)
	t.Ended = max(t.Ended, r.RespondedAt)
	t.Input, t.Output = t.Input.Plus(r.Input), t.Output.Plus(r.Output)
	if r.Input.Valid || r.Output.Valid {
		t.WithTokens++
	}
	if r.Latency.Valid {
		t.Latency += r.Latency.N
		t.WithLatency++
	}
	if r.Status.Valid && r.Status.N == http.StatusTooManyRequests {
		t.RateLimited++
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

// never is the window of no moment; include widens it.
var never = Window{From: Always.To, To: Always.From}

// include is the least window that contains w and the requests of t.
func (w Window) include(t *Totals) Window {
	return Window{From: min(w.From, t.First), To: max(w.To, t.Last)}
}

// grown is s with at least n elements.
func grown[T any](s []T, n int) []T {
	if n > len(s) {
		s = append(s, make([]T, n-len(s))...)
	}
	return s
}
