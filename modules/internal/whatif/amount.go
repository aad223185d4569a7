package whatif

import "github.com/weirhq/weir/plugins"

// Amount is what calls have cost, and what they would have cost.
type Amount struct {
	Calls int64 `json:"calls"`
	// Recorded is what the calls with a known cost have cost.
	Recorded plugins.Cost `json:"recorded_cost"`
	// Expected is what those of them would have cost of which that can be said, at least Low and
	// at most High. Compared is what these have cost.
	Expected plugins.Cost `json:"expected_cost"`
	Low      plugins.Cost `json:"low_cost"`
	High     plugins.Cost `json:"high_cost"`
	Compared plugins.Cost `json:"compared_cost"`
	// Unknown counts the calls of which it cannot be said.
	Unknown int64 `json:"unknown_calls"`
	// Refused counts the calls that the budgets of the policy refuse, which cost nothing.
	Refused int64 `json:"refused_calls"`
}

func newAmount() *Amount {
	zero := plugins.KnownCost(0)
	return &Amount{Recorded: zero, Expected: zero, Low: zero, High: zero, Compared: zero}
}

// add counts a call with its recorded cost and what it would have cost, nil if unknown.
func (a *Amount) add(recorded plugins.Cost, costs *costRange, refused bool) {
	a.Calls++
	if refused {
		a.Refused++
	}
	if recorded.Valid {
		a.Recorded.N += recorded.N
	}
	if costs == nil || !recorded.Valid {
		a.Unknown++
		return
	}
	a.Compared.N += recorded.N
	a.Low.N, a.Expected.N, a.High.N = a.Low.N+costs.low.cost, a.Expected.N+costs.expected.cost, a.High.N+costs.high.cost
}
