package llmgateway

import (
	"cmp"

	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// admit gets the bill by which the attempt, or the next round of it, is sent.
func (a *attempt) admit() error {
	c := a.call
	a.x.Record.PassthroughBilling = !c.shadows && c.h.site.App.Money().PaysWithCredits(a.x.Record.Org, a.target.Account) && !c.dialect.CountsTokens()
	s := c.spending(a.target)
	s.Call, s.Within = a.bound(), a.within
	s.Fit, s.Cut = a.fit(s.Call), a.cut(s.Call)
	bill, err := c.h.site.App.Money().Admit(c.ctx, s)
	if err != nil { // the bill of the round before, if any, has ended
		return err
	}
	bill.Earlier = a.earlier
	a.x.Bill = bill
	if a.round == 0 {
		bill.SetRateLimits(c.ctx, c.w.Header())
		bill.SetCallerLimit(c.ctx, c.w.Header())
	}
	return nil
}

// spending is what the bounds of the call at a target depend on.
func (c *call) spending(t routing.Target) money.Spending {
	r := &c.exchange.Record
	return money.Spending{Org: r.Org, Key: c.key, Account: t.Account, Model: t.Name(), Record: r, Limit: c.limit, Shadow: c.shadows}
}

// bounded reports whether credits or budgets bound what the call costs at a target.
func (c *call) bounded(t routing.Target) bool {
	return !c.shadows && c.h.site.App.Money().Bounds(c.spending(t))
}

// demanded is what is read of the request to bound its cost.
func (c *call) demanded() bound.Request {
	return bound.Request{Dialect: c.dialect, Field: c.field, Names: c.fieldNames, Form: c.form != nil}
}

// bound is what the attempt can use.
func (a *attempt) bound() *bound.Call {
	c, app := a.call, a.call.h.site.App
	of := &bound.Call{
		Request: c.demanded(), Model: a.target.Listed, Catalog: app.Catalog(), Provider: a.target.Account.Provider,
		Conditions: a.conditions(""), Free: c.dialect.CountsTokens(), Bytes: int64(len(c.sent)),
		Read: func() *bound.Demand {
			if a.mcp == nil {
				return bound.OfTurn(app.Counts(), c.dialect, c.object(c.sent), a.x.Record.Org, a.target.Name())
			}
			d := bound.Of(c.dialect, c.object(c.sent), c.h.MCP.Allow) // the request has no tools and results of MCP servers
			return &d
		},
	}
	of.Tiers = of.Request.Tiers()
	if a.req != nil {
		of.Bytes = max(a.req.ContentLength, of.Bytes)
	}
	switch {
	case c.dialect == plugins.Realtime:
		of.Fixed = a.realtimeUsage
	case c.route.usage != nil:
		of.Fixed = a.endpointUsage
		of.Told = func() plugins.Usage { return c.route.usage(c, bound.Likely) }
	}
	return of
}

// realtimeUsage is an upper bound on what a response of Realtime uses, which reads the
// conversation.
func (a *attempt) realtimeUsage() plugins.Usage {
	input := plugins.Known(a.target.Listed.InputLimit())
	output := plugins.Known(min(a.target.Listed.OutputLimit(), realtimeOutput))
	return plugins.Usage{Input: input, InputAudio: input, InputImage: input, Output: output}
}

// endpointUsage is an upper bound on what an endpoint uses whose requests have no limit of output.
func (a *attempt) endpointUsage() plugins.Usage {
	usage := a.call.route.usage(a.call, bound.Most)
	if a.call.dialect == plugins.Transcription {
		usage.Input.N = min(usage.Input.N, a.target.Listed.InputLimit())
		usage.InputAudio, usage.Output = usage.Input, usage.Input
	}
	return usage
}

// conditions are what the attempt's price in a tier depends on.
func (a *attempt) conditions(tier string) catalog.Conditions {
	return catalog.Conditions{
		At: a.x.Record.CreatedAt.Time(), Tier: tier, Geography: cmp.Or(a.x.Record.InferenceGeo, a.call.field("inference_geo").Str),
	}
}

// unpricedTier reports whether credits cannot pay for the tier that was asked for: the model
// has a price, and the tier has none. The tier is left out of the request.
func (a *attempt) unpricedTier() bool {
	tier, m := a.call.tier(), a.target.Listed
	if tier == "" || m == nil || !a.call.bounded(a.target) {
		return false
	}
	usage := plugins.Usage{Input: plugins.Known(a.call.tokens(bound.Likely)), Output: plugins.Known(0)}
	return !m.Cost(usage, a.conditions(tier)).Valid && m.Cost(usage, a.conditions("")).Valid
}

// settle counts an answer whose cost or usage the provider has not stated.
func (a *attempt) settle(end storage.EndState) { a.settleAs(end, false) }

// settleAs is settle. left says that nobody waits for the provider, which works on.
func (a *attempt) settleAs(end storage.EndState, left bool) {
	s := recording.Settling{End: end, Left: left, Streams: a.call.streams(), Served: a.client.begun || a.within, Request: a.call.object(a.call.sent)}
	switch answer := a.x.Answer.(type) {
	case *translate.Assembler:
		s.Written = func() (bytes, events int64) { return answer.Said(), a.eventsSent }
	default:
		if a.call.dialect == plugins.Realtime { // speech
			s.Written = func() (bytes, events int64) { return a.x.Record.ResponseBytes, 0 }
		}
	}
	a.x.Settle(s)
}
