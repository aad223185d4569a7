package routing

import "github.com/weirhq/weir/plugins"

// Explanation says where a call would go, and why.
type Explanation struct {
	Object string `json:"object"` // "route"
	// Model is what the request names.
	Model string `json:"model"`
	// Targets are tried in this order.
	Targets []ExplainedTarget `json:"targets"`
}

// ExplainedTarget is a target in an explanation.
type ExplainedTarget struct {
	Target   string `json:"target"` // `label/model`
	Account  string `json:"account"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	// Strategy is that of the alias, and Arm the name of the choice; null without one.
	Strategy *Strategy `json:"strategy"`
	Arm      *string   `json:"arm"`
	// State is `warm`, `well`, `limited` or `open`; `left_out` if its condition does not match, and
	// `refused` if the caller may not call it.
	State State `json:"state"`
	// Reason says why the target is left out or refused, else null.
	Reason *string `json:"reason"`
	// CachedTokens are those of the request that the provider's cache is expected to have.
	CachedTokens int64 `json:"cached_tokens"`
	// UnderWay are the calls under way at this node.
	UnderWay int `json:"under_way"`
	// FirstTokenMS is the median of the last five minutes at this node, null if unknown.
	FirstTokenMS *int64 `json:"first_token_ms"`
	// ExpectedCost is in US dollars, null unless the strategy is `cheapest`.
	ExpectedCost plugins.Cost `json:"expected_cost"`
}

// The states of targets that are not tried.
const (
	LeftOut State = "left_out"
	Refused State = "refused"
)

// Explain says where a call with these targets and places would go. refuse returns why the caller
// may not call a target, nil if it may.
func Explain(model string, targets []Target, places []Place, refuse func(Target) error) *Explanation {
	e := &Explanation{Object: "route", Model: model, Targets: []ExplainedTarget{}}
	for i := range places {
		p := &places[i]
		t := explained(p.Target)
		t.State, t.CachedTokens, t.UnderWay, t.ExpectedCost = p.State, p.warm, p.Load.UnderWay, p.Expected
		if ms := p.Load.Median.Milliseconds(); p.Load.Median > 0 {
			t.FirstTokenMS = &ms
		}
		if err := refuse(p.Target); err != nil {
			t.State, t.Reason = Refused, new(err.Error())
		}
		e.Targets = append(e.Targets, t)
	}
	for _, left := range targets {
		tried := false
		for i := range places {
			tried = tried || places[i].Target == left
		}
		if !tried {
			t := explained(left)
			t.State, t.Reason = LeftOut, new("the call does not match "+left.Choice.When)
			e.Targets = append(e.Targets, t)
		}
	}
	return e
}

func explained(t Target) ExplainedTarget {
	e := ExplainedTarget{Target: t.Name(), Account: t.Account.Label, Provider: t.Account.Provider, Model: t.Model}
	if t.Alias != nil {
		e.Strategy = new(InOrder)
		if !t.Alias.inOrder() {
			e.Strategy = new(t.Alias.Strategy)
		}
	}
	if arm := t.Arm(); arm != "" {
		e.Arm = &arm
	}
	return e
}
