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
type limits struct{ low, expected, high trials }

// trials are budgets that must all admit a call.
type trials []*money.Trial

func newLimits(budgets []*money.Budget) limits {
	begin := func() (list trials) {
		for _, b := range budgets {
			list = append(list, money.NewTrial(b, func(*money.Refusal) {}))
		}
		return list
	}
	return limits{begin(), begin(), begin()}
}

// judge counts a call at a target, nil for the one that it had, and reports whether the budgets would
// have refused it. It lowers what the call would have cost by what they refuse.
func (l limits) judge(r *storage.Record, at *routing.Share, would *span) (refused bool) {
	if len(l.expected) == 0 {
		return false
	}
	unknown := would == nil
	if unknown {
		would = new(exactly(0, r.Usage))
	}
	with := func(e *estimate) *storage.Record {
		c := *r
		c.Cost, c.Usage = plugins.Cost{N: e.cost, Valid: !unknown}, e.usage
		if at != nil {
			c.Provider, c.Account, c.Model = at.Account.Provider, at.Account.Label, at.Model
		}
		return &c
	}
	least, likely, most := with(&would.low), with(&would.expected), with(&would.high)
	mayFit, fits := l.low.fit(least), l.high.fit(most)
	if fits {
		l.low.admit(least)
	} else {
		would.low.cost = 0
	}
	if mayFit {
		l.high.admit(most)
	} else {
		would.high.cost = 0
	}
	if l.expected.fit(likely) {
		l.expected.admit(likely)
		return false
	}
	for _, b := range l.expected {
		if !b.Fits(likely) {
			b.Refuse(likely)
		}
	}
	would.expected.cost = 0
	return true
}

func (t trials) fit(r *storage.Record) bool {
	for _, b := range t {
		if !b.Fits(r) {
			return false
		}
	}
	return true
}

func (t trials) admit(r *storage.Record) {
	for _, b := range t {
		b.Admit(r)
	}
}
