package llmgateway

import (
	"net/http"
	"strconv"

	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/socket"
	"github.com/weirhq/weir/storage"
)

// cacheLookup is what Weir's cache knows of a call.
type cacheLookup struct {
	lead  *cache.Lead    // ends with the call; nil if no other call can get the answer
	first routing.Target // the target whose answer other calls can get
	// places are the targets in the order in which the call tries them, nil before they are chosen.
	places []routing.Place
}

// cachedAnswer returns the answer of Weir's cache, nil if it has none. It waits for an equal call that
// is in flight. The cache has only answers of the first target.
func (c *call) cachedAnswer(targets []routing.Target) *recording.LocalReply {
	o := c.h.Cache.Options(&c.controls.Cache)
	if _, isSocket := c.w.(*socket.Events); o == nil || isSocket || c.continuation.state.Background || c.h.site.Cache == nil {
		return nil
	}
	places, err := c.choose(targets)
	if err != nil || len(places) == 0 {
		return nil
	}
	c.cache.places = places
	first := places[0].Target
	v, err := c.variant(first.Choice)
	if err != nil || v.at(first).allow() != nil {
		return nil
	}
	var (
		hit     *cache.Hit
		refusal string
	)
	switch r := &c.exchange.Record; {
	case r.RequestOmitted || r.ResponseOmitted:
		refusal = "content is omitted"
	case c.input.form != nil || c.input.compaction != nil || c.stored.Field != "" || len(c.stored.IDs) > 0 || c.continuation.state.PreviousResponseID != "" || c.continuation.state.ConversationID != "":
		refusal = "the request names what is kept"
	case c.h.site.Cache() == nil:
		refusal = "the cache does not open"
	default:
		hit, c.cache.lead, refusal = c.h.site.Cache().Answer(c.ctx, v.at(first).cacheRequest(), o)
	}
	c.w.Header()["Service-Cache"] = []string{"MISS"}
	if refusal != "" {
		if o.Asked {
			c.controls.Warn("Service-Cache-Enabled", "not used, "+refusal)
		}
		return nil
	}
	c.cache.first = first
	v.cache = c.cache
	if hit == nil {
		c.exchange.Record.AnswerCache = storage.CacheMiss
		return nil
	}
	return c.at(first).repeat(hit)
}

// answer makes the call. Equal calls that wait for it continue when it ends, however it ends.
func (c *call) answer(targets []routing.Target) *routing.Alias {
	defer func() { c.cache.lead.End() }()
	return c.tryTargets(targets)
}

// cacheRequest returns the call as the cache compares it: by what the target gets.
func (at candidate) cacheRequest() *cache.Request {
	c, t := at.call, at.target
	header := make(http.Header)
	passFields(header, c.r.Header, "Accept-Encoding", "Anthropic-Version", "Anthropic-Beta", "Openai-Beta")
	at.passHeaders(header)
	target := []string{"target", t.Account.Label, string(t.Account.ID[:]), t.Account.BaseURL, t.Model, strconv.FormatBool(c.controls.Strict)}
	return &cache.Request{
		Org: c.exchange.Record.Org, Target: target,
		Method: c.r.Method, Path: c.r.URL.Path, Dialect: c.dialect, Header: header, Body: c.input.object(c.input.sent),
	}
}

// repeat returns an earlier answer of a provider. Budgets and limits count the call as a request
// without a cost. If they refuse it, repeat returns nil, and the call goes to its targets.
func (at candidate) repeat(hit *cache.Hit) *recording.LocalReply {
	c, s := at.call, at.spending()
	s.Call = &bound.Call{Request: c.input.boundRequest(), Model: at.target.Listed, Provider: at.target.Account.Provider, Free: true}
	bill, err := c.h.site.App.Money().Admit(c.ctx, s)
	if err != nil {
		return nil
	}
	c.exchange.Bill = bill
	header := c.w.Header()
	bill.SetRateLimits(c.ctx, header)
	bill.SetCallerLimit(c.ctx, header)
	if c.controls.Cost {
		for _, name := range []string{"Service-Cost", "Service-Prompt-Tokens", "Service-Completion-Tokens"} {
			header.Set(name, "0")
		}
	}
	return recording.Repeat(hit)
}

// isFirst reports whether the attempt is at the target whose answer others can get.
func (a *attempt) isFirst() bool {
	return a.target == a.call.cache.first
}

// saveAnswer saves the answer for later calls, unless a budget has lowered or cut it: the budget
// may admit the next call as a whole.
func (a *attempt) saveAnswer() {
	c := a.call
	if c.cache.lead != nil && a.isFirst() && !a.x.Cut && a.loweredLimit() == 0 && !a.unpricedTier() {
		c.cache.lead.Save(&a.x.Record, a.x.Info(), a.client.repeatable, a.client.usage != nil)
	}
}
