package whatif

import (
	"iter"

	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// limits are the budgets of a policy, tried on what calls would have cost. Nobody knows that cost for
// certain, so each budget is tried three times: on the least that can have been spent, on what is
// likely, and on the most.
type limits struct {
	low, expected, high trials
	calls               [3]callCopies // what the three judge, in memory that is used again
}

// trials are budgets that must all admit a call.
type trials []*money.Trial

// limitedCall is a call as budgets judge it.
type limitedCall struct {
	*storage.Record
	as *storage.Record // the same with the creator of its key as the caller
}

// callCopies are the memory of a limitedCall.
type callCopies struct{ call, as storage.Record }

func newLimits(budgets []*money.Budget) limits {
	begin := func() (list trials) {
		for _, b := range budgets {
			list = append(list, money.NewTrial(b, func(*money.Refusal) {}))
		}
		return list
	}
	return limits{low: begin(), expected: begin(), high: begin()}
}

// judge counts a call at a target, nil for the one that it had, and reports whether the budgets would
// have refused it. It sets to zero what the call would have cost where they refuse it. costs is nil if
// nobody knows what the call would have cost.
func (l *limits) judge(call limitedCall, at *routing.Share, costs *costRange) (refused bool) {
	if len(l.expected) == 0 {
		return false
	}
	known := costs != nil
	if !known {
		costs = new(exactly(0, call.Usage))
	}
	cheapest := l.calls[0].repriced(call, at, &costs.low, known)
	likely := l.calls[1].repriced(call, at, &costs.expected, known)
	dearest := l.calls[2].repriced(call, at, &costs.high, known)

	// A call that fits at its dearest was made for certain, and low counts it. One that fits only at its
	// cheapest may have been made, and high counts it.
	mayFit, fits := l.low.fit(cheapest), l.high.fit(dearest)
	if fits {
		l.low.admit(cheapest)
	} else {
		costs.low.cost = 0
	}
	if mayFit {
		l.high.admit(dearest)
	} else {
		costs.high.cost = 0
	}

	if l.expected.fit(likely) {
		l.expected.admit(likely)
		return false
	}
	l.expected.refuse(likely)
	costs.expected.cost = 0
	return true
}

// repriced returns a call as it would have been at a target, nil for the one that it had.
func (c *callCopies) repriced(call limitedCall, at *routing.Share, e *estimate, known bool) limitedCall {
	write := func(to, r *storage.Record) *storage.Record {
		*to = *r
		to.Cost, to.Usage = plugins.Cost{N: e.cost, Valid: known}, e.usage
		if at != nil {
			to.Provider, to.Account, to.Model = at.Account.Provider, at.Account.Label, at.Model
		}
		return to
	}
	repriced := limitedCall{Record: write(&c.call, call.Record)}
	if repriced.as = repriced.Record; call.as != call.Record {
		repriced.as = write(&c.as, call.as)
	}
	return repriced
}

// each yields the budgets that count a call, with how they count it.
func (t trials) each(c limitedCall) iter.Seq2[*money.Trial, *storage.Record] {
	return func(yield func(*money.Trial, *storage.Record) bool) {
		for _, b := range t {
			if counted := b.Counted(c.as, c.Record); counted != nil && !yield(b, counted) {
				return
			}
		}
	}
}

func (t trials) fit(c limitedCall) bool {
	for b, counted := range t.each(c) {
		if !b.Fits(counted) {
			return false
		}
	}
	return true
}

func (t trials) admit(c limitedCall) {
	for b, counted := range t.each(c) {
		b.Admit(counted)
	}
}

// refuse tells the budgets that have no room for a call.
func (t trials) refuse(c limitedCall) {
	for b, counted := range t.each(c) {
		if !b.Fits(counted) {
			b.Refuse(counted)
		}
	}
}

// size is how much the trials keep.
func (l *limits) size() (n int) {
	for _, list := range [...]trials{l.low, l.expected, l.high} {
		for _, b := range list {
			n += b.Size()
		}
	}
	return n
}
