package whatif

import (
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// limits are the budgets of a policy, tried on what calls would have cost. As nobody knows that of
// each call, expected counts what is likely, low counts the least of the calls that fit in any case,
// and high counts the most of the calls that may fit.
type limits struct {
	low, expected, high trials
	calls               [3]callCopies // those that are judged, in memory that is used again
}

// callCopies are a call as it would have been, and the same with the creator of its key as the caller.
type callCopies struct{ call, as storage.Record }

// trials are budgets that must all admit a call.
type trials []*money.Trial

// limitedCall is a call as budgets judge it.
type limitedCall struct {
	*storage.Record
	as *storage.Record // the same with the creator of its key as the caller
}

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
// have refused it. It lowers what the call would have cost by what they refuse.
func (l *limits) judge(call limitedCall, at *routing.Share, would *span) (refused bool) {
	if len(l.expected) == 0 {
		return false
	}
	unknown := would == nil
	if unknown {
		would = new(exactly(0, call.Usage))
	}
	change := func(r, to *storage.Record, e *estimate) *storage.Record {
		*to = *r
		to.Cost, to.Usage = plugins.Cost{N: e.cost, Valid: !unknown}, e.usage
		if at != nil {
			to.Provider, to.Account, to.Model = at.Account.Provider, at.Account.Label, at.Model
		}
		return to
	}
	with := func(i int, e *estimate) (c limitedCall) {
		copies := &l.calls[i]
		c.Record = change(call.Record, &copies.call, e)
		if c.as = c.Record; call.as != call.Record {
			c.as = change(call.as, &copies.as, e)
		}
		return c
	}
	cheapest, expected, dearest := with(0, &would.low), with(1, &would.expected), with(2, &would.high)
	mayFit, fits := l.low.fit(cheapest), l.high.fit(dearest)
	if fits {
		l.low.admit(cheapest)
	} else {
		would.low.cost = 0
	}
	if mayFit {
		l.high.admit(dearest)
	} else {
		would.high.cost = 0
	}
	if l.expected.fit(expected) {
		l.expected.admit(expected)
		return false
	}
	for _, b := range l.expected {
		if r := b.Counted(expected.as, expected.Record); r != nil && !b.Fits(r) {
			b.Refuse(r)
		}
	}
	would.expected.cost = 0
	return true
}

func (t trials) fit(c limitedCall) bool {
	for _, b := range t {
		if r := b.Counted(c.as, c.Record); r != nil && !b.Fits(r) {
			return false
		}
	}
	return true
}

func (t trials) admit(c limitedCall) {
	for _, b := range t {
		if r := b.Counted(c.as, c.Record); r != nil {
			b.Admit(r)
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
