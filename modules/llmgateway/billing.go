package llmgateway

import (
	"bytes"
	"cmp"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmgateway/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// admit gets the ticket by which the attempt is sent, for a call that costs no more than
// the whole request can make the provider read and write.
func (a *attempt) admit() error {
	a.x.Record.PassthroughBilling = a.call.h.site.App.PaysWithCredits(a.x.Record.Org, a.target.Account) && !a.call.dialect.CountsTokens()
	s := a.call.spending(a.target)
	s.AtMost, s.Fit, s.Within = a.atMost, a.fit(), a.within
	if budgets, err := a.call.h.site.App.BudgetsOf(s.Org); len(budgets) > 0 || err != nil || s.Limit != nil {
		s.Expected, s.Cut = a.expected, a.cut()
	}
	ticket, err := a.call.h.site.Money.Admit(a.call.ctx, s)
	if err != nil { // the ticket of the round before, if any, has ended
		return err
	}
	if a.ticket = ticket; ticket.Bounded() {
		a.x.Pay = a.charge
	}
	if a.round == 0 {
		ticket.SetRateLimits(a.call.ctx, a.call.w.Header())
		ticket.SetCallerLimit(a.call.ctx, a.call.w.Header())
	}
	return nil
}

// spending is what the bounds of the call at a target depend on.
func (c *call) spending(t routing.Target) llmapp.Spending {
	r := &c.exchange.Record
	return llmapp.Spending{Org: r.Org, Key: c.key, Account: t.Account, Model: t.Name(), Record: r, Limit: c.limit}
}

// bounded reports whether credits or budgets bound what the call costs at a target.
func (c *call) bounded(t routing.Target) bool { return c.h.site.Money.Bounds(c.spending(t)) }

// demanded is what is read of the request to bound its cost.
func (c *call) demanded() bound.Request {
	return bound.Request{Dialect: c.dialect, Field: c.field, Names: c.fieldNames, Form: c.form != nil}
}

// atMost returns the most that the attempt can use, unknown without a price.
func (a *attempt) atMost() bound.Used { return a.uses(bound.Most) }

// uses is atMost by the tokens that text has by a scale.
func (a *attempt) uses(by bound.Scale) bound.Used {
	c, m := a.call, a.target.Listed
	switch {
	case c.dialect.CountsTokens():
		return bound.Free()
	case m == nil:
		return bound.Used{}
	}
	asked := a.outputLimit()
	if a.cutAt > 0 {
		asked = a.cutAt
	}
	usage := plugins.Usage{Input: plugins.Known(m.InputLimit()), Output: plugins.Known(m.OutputLimit())}
	beside := plugins.KnownCost(0)
	switch {
	case c.dialect == plugins.Realtime: // each response reads the conversation
		usage.InputAudio, usage.InputImage = usage.Input, usage.Input
		usage.Output.N = min(usage.Output.N, realtimeOutput)
	case c.route.usage != nil:
		usage = c.route.usage(c, by)
		if c.dialect == plugins.Transcription {
			usage.Input.N = min(usage.Input.N, m.InputLimit())
			usage.InputAudio, usage.Output = usage.Input, usage.Input
		}
	default:
		d := a.demand()
		usage = d.Usage(m, by, max(a.req.ContentLength, int64(len(c.sent))), asked, c.demanded().Answers())
		beside = a.beside(d)
	}
	cost := m.AtMost(usage, a.conditions(""), c.demanded().Tiers()...)
	return bound.Used{Cost: cost.Both(beside), Usage: usage}
}

// demand is what the request can make the provider read and write. The search for a limit that
// fits asks many times: the request is read once.
func (a *attempt) demand() *bound.Demand {
	if a.reads != nil {
		return a.reads
	}
	c := a.call
	if a.mcp == nil {
		a.reads = bound.OfTurn(c.h.site.App.Counts(), c.dialect, c.object(c.sent), a.x.Record.Org, a.target.Name())
	} else { // the client's request has no tools and results of MCP servers
		d := bound.Of(c.dialect, c.object(c.sent), c.h.MCP.Allow)
		a.reads = &d
	}
	return a.reads
}

// expected returns what the attempt is likely to use if each answer has no more than so many
// tokens.
func (a *attempt) expected(output int64) bound.Used {
	limit := a.cutAt
	defer func() { a.cutAt = limit }()
	a.cutAt = output
	return a.uses(bound.Likely)
}

// beside is the most that models cost which hosted tools call: unknown if one of these models
// is not known.
func (a *attempt) beside(d *bound.Demand) plugins.Cost {
	n, cost := d.MostCalls(), plugins.KnownCost(0)
	add := func(model string, usage func(*catalog.Model) plugins.Usage, times int64) {
		var most plugins.Cost
		if m, ok := a.call.h.site.App.Catalog().Lookup(a.target.Account.Provider, model); ok {
			most = m.AtMost(usage(m), a.conditions(""))
		}
		most.N *= plugins.Nanodollars(times)
		cost = cost.Both(most)
	}
	for _, painter := range d.Painters {
		tokens := plugins.Known(n * imageTokens)
		add(painter, func(*catalog.Model) plugins.Usage {
			return plugins.Usage{Input: tokens, InputImage: tokens, Output: tokens, OutputImage: tokens, Images: plugins.Known(n)}
		}, 1)
	}
	for _, advisor := range d.Advisors { // reads all that the model reads
		add(advisor, func(m *catalog.Model) plugins.Usage { return d.Usage(m, bound.Most, 0, 0, 1) }, n)
	}
	return cost
}

// conditions are what the attempt's price in a tier depends on.
func (a *attempt) conditions(tier string) catalog.Conditions {
	return catalog.Conditions{
		At: a.x.Record.CreatedAt.Time(), Tier: tier, Geography: cmp.Or(a.x.Record.InferenceGeo, a.call.field("inference_geo").Str),
	}
}

// estimate returns what the call costs with so many tokens of output and what is known of
// the input.
func (a *attempt) estimate(output int64, tier string) plugins.Cost {
	if a.target.Listed == nil {
		return plugins.Cost{}
	}
	return a.target.Listed.Cost(a.likely(output), a.conditions(tier))
}

// likely returns what the call uses with so many tokens of output and what is known of the
// input.
func (a *attempt) likely(output int64) plugins.Usage {
	usage := plugins.Usage{Input: plugins.Known(a.inputTokens()), Output: plugins.Known(output)}
	if stated := a.x.Info().Usage; stated.Input.Valid {
		usage = stated
		usage.Output = plugins.Known(max(output, stated.Output.N))
	}
	if used := a.call.route.usage; used != nil {
		usage = used(a.call, bound.Likely)
	}
	if a.call.dialect == plugins.Realtime { // all is audio, and the conversation is not known
		input := plugins.Known(realtimeInput)
		usage = plugins.Usage{Input: input, InputAudio: input, Output: usage.Output, OutputAudio: usage.Output}
	}
	return usage
}

// inputTokens estimates the tokens of what the provider is sent.
func (a *attempt) inputTokens() int64 {
	if a.round > 0 {
		return bound.Likely.Text(a.req.ContentLength)
	}
	return a.call.tokens(bound.Likely)
}

// unpricedTier reports whether credits cannot pay for the tier that was asked for: the model
// has a price, and the tier has none. The tier is left out of the request.
func (a *attempt) unpricedTier() bool {
	tier := a.call.tier()
	return tier != "" && a.call.bounded(a.target) && !a.estimate(0, tier).Valid && a.estimate(0, "").Valid
}

// charge counts what the call has cost and used in the credits and the budgets.
func (a *attempt) charge(cost plugins.Cost) {
	a.reads.Learn(a.call.h.site.App.Counts(), a.x.Record.Usage.Input)
	a.meter(bound.Used{Cost: cost, Usage: a.x.Record.Usage})
}

func (a *attempt) meter(used bound.Used) {
	if a.ticket == nil {
		return
	}
	if err := a.ticket.Charge(a.call.ctx, used, a.paid); err != nil {
		a.call.h.site.Logger.Error("a charge is not on disk", zap.Stringer("id", a.x.Record.ID), zap.Stringer("cost", used.Cost.N), zap.Error(err))
	}
}

// settle counts the cost of an answer by its length, if the answer was broken off before the
// provider had stated its usage: until the end, some providers state only what they began
// with. Credits pay so, too, for an answer by a tier without a price.
func (a *attempt) settle(end storage.EndState) {
	if a.x.Record.Dialect == plugins.Batches { // the calls of a batch tell what they cost
		return
	}
	cost, paid := a.x.Record.Cost, a.ticket.Open() && a.ticket.Reserved().Valid
	defer a.settleTokens(end) // last, when the stated usage is counted
	if cost.Valid && !a.x.BrokenOff(end) || !paid && !a.countable(end) {
		return
	}
	if _, told := a.said(); !told && !paid { // what is paid counts as all that passed
		a.x.Uncounted = a.x.Answer != nil && a.x.Info().Phase == plugins.Running
		a.x.Commit(end)
		return
	}
	counted := a.counted(paid)
	a.x.Counted = max(a.paid.Cost.N+counted.N, cost.N)
	a.x.Commit(end)
}

// counted is what the answer has cost by its length. What is paid for costs no more than was
// set aside.
func (a *attempt) counted(paid bool) plugins.Cost {
	output := a.output()
	if !paid {
		return a.estimate(output, cmp.Or(a.x.Record.ServiceTier, a.call.tier()))
	}
	counted := a.estimate(output, a.x.Record.ServiceTier).Or(a.estimate(output, a.call.tier())).Or(a.estimate(output, ""))
	counted.N = min(counted.N, a.ticket.Reserved().N)
	return counted
}

// settleUnseen counts an answer about which nothing is known.
func (a *attempt) settleUnseen() {
	if !a.ticket.Open() {
		return
	}
	a.unseen = true
	a.x.Stop() // tells how long the provider had
	if a.ticket.Reserved().Valid {
		a.x.Counted = a.paid.Cost.N + a.counted(true).N
	}
	a.meter(bound.Used{Usage: a.likely(a.output())})
}

// settleTokens counts the tokens of an answer by its length, if the provider has not stated
// them.
func (a *attempt) settleTokens(end storage.EndState) {
	if stated := a.x.Record.Usage; a.ticket.Open() && (!stated.Input.Valid || !stated.Output.Valid && a.call.route.usage == nil || a.x.BrokenOff(end)) {
		a.meter(bound.Used{Usage: a.likely(a.output())})
	}
}

// output estimates the tokens of the answer by its length, and the tokens that a stream does
// not show by the time that the model had to write them.
func (a *attempt) output() int64 {
	if a.call.dialect == plugins.Realtime {
		return a.x.Record.ResponseBytes / realtimeBytes
	}
	written := max(a.length()/bound.Likely.TextBytes, a.events())
	if m := a.target.Listed; a.unseen || m != nil && a.call.demanded().Silent(m) {
		written = max(written, min(bound.Thought(a.x.Record.Latency.N), a.mostOutput()))
	}
	return written
}

// countable reports whether the length of an answer tells its cost: it was broken off, and
// the provider has stated what it read, or has read no more than the text of the request.
func (a *attempt) countable(end storage.EndState) bool {
	c := a.call
	if end != storage.ClientAborted && end != storage.UpstreamAborted || a.round > 0 || c.route.usage != nil || c.dialect == plugins.Realtime {
		return false
	}
	return bound.Countable(c.dialect, c.object(c.sent), a.x.Info().Usage.Input)
}

// release frees what is left of the reservation. Nothing can be charged any more.
func (a *attempt) release() {
	if err := a.ticket.Release(a.call.ctx); err != nil {
		a.call.h.site.Logger.Error("a reservation of credits is not released", zap.Stringer("id", a.x.Record.ID), zap.Error(err))
	}
}

// events is how many events of a stream the client got. Each event has a token or more, and a
// token of digits or rare characters has less than four bytes.
func (a *attempt) events() int64 {
	if !a.x.Record.Stream {
		return 0
	}
	if a.request != nil {
		return a.eventsSent
	}
	return int64(bytes.Count(a.x.Kept.Content(&a.x.Record).Response.Data, []byte("data:")))
}

// length is how many bytes the model said, or how many passed if nothing of the answer is
// kept.
func (a *attempt) length() int64 {
	if n, told := a.said(); told {
		return n
	}
	return a.x.Record.ResponseBytes
}

// said returns how many bytes the model said, and is false if nothing tells.
func (a *attempt) said() (n int64, told bool) {
	if assembler, ok := a.x.Answer.(*translate.Assembler); ok {
		return assembler.Said(), true
	}
	if a.x.Record.ResponseBytes == 0 {
		return 0, true
	}
	return bound.Written(a.call.dialect, a.x.Kept.Content(&a.x.Record).Response)
}
