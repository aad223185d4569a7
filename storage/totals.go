package storage

import (
	"net/http"

	"github.com/weirhq/weir/plugins"
)

// tally counts requests and what they cost. Attempts that did not answer only
// cost: without an answering request there is no user and no session.
type tally struct {
	requests, withoutCost int64
	cost                  plugins.Cost
}

func (t *tally) add(r *Row) {
	t.cost = t.cost.Plus(r.Cost)
	if !r.Cost.Valid {
		t.withoutCost++
	}
	if !r.Attempt {
		t.requests++
	}
}

// totals are what the requests of one group add up to.
type totals struct {
	tally
	first, last Timestamp // when the first and the last request began
	ended       Timestamp // when the last answer ended, 0 without any

	input, output plugins.Count
	withTokens    int64
	latency       plugins.Milliseconds // all together
	withLatency   int64
	rateLimited   int64
}

func (t *totals) add(r *Row) {
	t.tally.add(r)
	if r.Attempt {
		return
	}
	if t.requests == 1 {
		t.first, t.last = r.CreatedAt, r.CreatedAt
	}
	t.first, t.last = min(t.first, r.CreatedAt), max(t.last, r.CreatedAt)
	t.ended = max(t.ended, r.RespondedAt)
	t.input, t.output = t.input.Plus(r.Input), t.output.Plus(r.Output)
	if r.Input.Valid || r.Output.Valid {
		t.withTokens++
	}
	if r.Latency.Valid {
		t.latency += r.Latency.N
		t.withLatency++
	}
	if r.Status.Valid && r.Status.N == http.StatusTooManyRequests {
		t.rateLimited++
	}
}

// tokens are input and output together.
func (t *totals) tokens() plugins.Count { return t.input.Plus(t.output) }

// duration is the time from the start of the first request to the end of the
// last answer.
func (t *totals) duration() plugins.Duration {
	if t.ended == 0 {
		return plugins.Duration{}
	}
	return plugins.Duration{N: plugins.Milliseconds(t.ended - t.first), Valid: true}
}

// never is the window of no moment; include widens it.
var never = Window{From: Always.To, To: Always.From}

// include is the least window that contains w and the requests of t.
func (w Window) include(t *totals) Window {
	return Window{From: min(w.From, t.first), To: max(w.To, t.last)}
}

// grown is s with at least n elements.
func grown[T any](s []T, n int) []T {
	if n > len(s) {
		s = append(s, make([]T, n-len(s))...)
	}
	return s
}

// pageOf is what stands on one page, not nil even if nothing does.
func pageOf[T any](all []*T, offset, limit int) []T {
	all = all[min(offset, len(all)):]
	page := make([]T, min(limit, len(all)))
	for i := range page {
		page[i] = *all[i]
	}
	return page
}
