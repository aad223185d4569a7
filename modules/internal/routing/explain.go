package routing

import (
	"cmp"
	"slices"

	"github.com/weirhq/weir/plugins"
)

// Explanation says where a call would go, and why.
type Explanation struct {
	Object string `json:"object"` // "route"
	// Model is what the request names.
	Model string `json:"model"`
	// Targets are tried in this order.
	Targets []ExplainedTarget `json:"targets"`
}

// Description is a target and how it is, as answers have it.
type Description struct {
	Target   string  `json:"target"` // `label/model`
	Account  string  `json:"account"`
	Provider string  `json:"provider"`
	Model    string  `json:"model"`
	Arm      *string `json:"arm"` // null without one
	State    State   `json:"state"`
	// UnderWay are the calls under way at this node.
	UnderWay int `json:"under_way"`
	// FirstTokenMS is the median of the last five minutes at this node, null if unknown.
	FirstTokenMS *int64 `json:"first_token_ms"`
}

// Describe describes the target as it is.
func (p *Place) Describe() Description {
	d := Description{
		Target: p.Name, Account: p.Account.Label, Provider: p.Account.Provider, Model: p.Model, State: p.State, UnderWay: p.Load.UnderWay,
	}
	if arm := p.Arm(); arm != "" {
		d.Arm = &arm
	}
	if ms := p.Load.Median.Milliseconds(); p.Load.Median > 0 {
		d.FirstTokenMS = &ms
	}
	return d
}

// ExplainedTarget is a target in an explanation. Its State may also be LeftOut or Refused.
type ExplainedTarget struct {
	Description
	// Strategy is the strategy of the alias, null without an alias.
	Strategy *Strategy `json:"strategy"`
	// Reason says why the target is left out or refused, else null.
	Reason *string `json:"reason"`
	// CachedTokens are those of the request that the provider's cache is expected to have.
	CachedTokens int64 `json:"cached_tokens"`
	// ExpectedCost is in US dollars, null unless the strategy is `cheapest`.
	ExpectedCost plugins.Cost `json:"expected_cost"`
}

// The states of targets that are not tried.
const (
	LeftOut State = "left_out" // its condition does not match the call
	Refused State = "refused"  // the caller may not call it
)

// Explain says where a call with these targets and places would go. refuse returns why the caller
// may not call a target, nil if it may.
func Explain(model string, targets []Target, places []Place, loads *Loads, refuse func(Target) error) *Explanation {
	loads.setLoads(places) // the choice may not have needed them
	e := &Explanation{Object: "route", Model: model, Targets: []ExplainedTarget{}}
	for i := range places {
		p := &places[i]
		t := explained(p)
		if err := refuse(p.Target); err != nil {
			t.State, t.Reason = Refused, new(err.Error())
		}
		e.Targets = append(e.Targets, t)
	}
	for _, other := range targets {
		if !slices.ContainsFunc(places, func(p Place) bool { return p.Target == other }) {
			t := explained(&Place{Target: other})
			t.State, t.Reason = LeftOut, new("the call does not match "+other.Choice.When)
			e.Targets = append(e.Targets, t)
		}
	}
	return e
}

func explained(p *Place) ExplainedTarget {
	e := ExplainedTarget{Description: p.Describe(), CachedTokens: p.warm, ExpectedCost: p.Expected}
	if p.Alias != nil {
		e.Strategy = new(cmp.Or(p.Alias.Strategy, InOrder))
	}
	return e
}
