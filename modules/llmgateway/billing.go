package llmgateway

import (
	"cmp"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// admit gets the bill by which the attempt is sent.
func (a *attempt) admit() error {
	c, of := a.call, a.bound()
	if err := a.bill(of, a.fit(of), a.cut(of)); err != nil {
		return err
	}
	a.x.Bill.SetRateLimits(c.ctx, c.w.Header())
	a.x.Bill.SetCallerLimit(c.ctx, c.w.Header())
	return nil
}

// bill sets aside what a request of the attempt can use, within the limits to which its output can
// be lowered and cut.
func (a *attempt) bill(of *bound.Call, fit, cut bound.Limits) error {
	c := a.call
	a.x.Record.PassthroughBilling = !c.shadows && c.h.site.App.Money().PaysWithCredits(a.x.Record.Org, a.target.Account) && !c.dialect.CountsTokens()
	s := a.spending()
	s.Call, s.Within, s.Fit, s.Cut = of, a.nested, fit, cut
	bill, err := c.h.site.App.Money().Admit(c.ctx, s)
	if err == nil {
		a.x.Bill = bill
	}
	return err
}

// bound is what the attempt can use.
func (a *attempt) bound() *bound.Call {
	c, app := a.call, a.call.h.site.App
	of := &bound.Call{
		Request: c.input.boundRequest(), Model: a.target.Listed, Catalog: app.Catalog(), Provider: a.target.Account.Provider,
		Conditions: a.conditions(""), Free: c.dialect.CountsTokens(), Bytes: int64(len(c.input.sent)),
		Read: func() *bound.Demand {
			return bound.OfTurn(app.Counts(), c.dialect, c.input.object(c.input.sent), a.x.Record.Org, a.target.Name)
		},
	}
	of.Tiers = of.Request.Tiers()
	if a.req != nil {
		of.Bytes = max(a.req.ContentLength, of.Bytes)
	}
	if b, ok := a.lane.(bounder); ok {
		b.Bound(of)
	}
	return of
}

// conditions are what the attempt's price in a tier depends on.
func (a *attempt) conditions(tier string) catalog.Conditions {
	return catalog.Conditions{
		At: a.x.Record.CreatedAt.Time(), Tier: tier, Geography: cmp.Or(a.x.Record.InferenceGeo, a.call.input.field("inference_geo").Str),
	}
}

// unpricedTier reports whether credits cannot pay for the tier that was asked for: the model
// has a price, and the tier has none. The tier is left out of the request.
func (a *attempt) unpricedTier() bool {
	tier, m := a.call.input.tier(), a.target.Listed
	if tier == "" || m == nil || !a.bounded() {
		return false
	}
	usage := plugins.Usage{Input: plugins.Known(a.call.input.tokens(bound.Likely)), Output: plugins.Known(0)}
	return !m.Cost(usage, a.conditions(tier)).Valid && m.Cost(usage, a.conditions("")).Valid
}

// settle estimates the usage and cost of an answer if the provider has not stated them. abandoned is
// true if the provider may still work on the request and charge for it.
func (a *attempt) settle(end storage.EndState, abandoned bool) {
	s := recording.Settling{End: end, Left: abandoned, Streams: a.call.input.streams(), Served: a.client.begun || a.nested, Request: a.call.input.object(a.call.input.sent)}
	if a.nested {
		info := a.x.Info()
		s.Unbegun = info.ResponseID == "" && info.Usage == (plugins.Usage{})
	}
	switch answer := a.x.Answer.(type) {
	case *translate.Assembler:
		s.Written = func() (bytes, events int64) { return answer.TextLength(), a.client.events }
	default:
		if a.call.dialect == plugins.Realtime { // speech
			s.Written = func() (bytes, events int64) { return a.x.Record.ResponseBytes, 0 }
		}
	}
	a.x.Settle(s)
}
