package llmlog

import (
	"net/http"
	"strconv"

	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/transport"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// repetition is what Weir's cache does for a call.
type repetition struct {
	of          *exchange
	options     *cache.Options  // nil if neither the client nor the site wants it
	request     *plugins.Object // the request, nil if the cache is not asked
	intercepted bool            // the request was shown to the cache
	lead        *cache.Lead     // ends with the call; nil if no other call can get the answer
}

// ask has the cache asked for an answer when the request leaves. Only then is it known what
// the provider would see of the request: the route may add credentials, rewrite it, and choose
// among upstreams.
func (p *repetition) ask(body *plugins.Object) {
	x := p.of
	switch r := &x.rec.Record; {
	case r.RequestOmitted || r.ResponseOmitted:
		p.refuse("content is omitted")
	case x.h.site.Cache() == nil:
		p.refuse("the cache does not open")
	default:
		p.request = body
		x.r = x.r.WithContext(transport.WithInterceptor(x.r.Context(), p.intercept))
	}
}

// intercept answers the request that the provider would get from the cache. It waits for an equal
// call. Several requests of a call are those that the route tries at one upstream after another.
func (p *repetition) intercept(out *http.Request, via string) *http.Response {
	x := p.of
	p.intercepted = true
	p.lead.Withhold() // the upstream before this one has failed
	q := &cache.Request{
		Org: x.rec.Record.Org, Target: []string{"proxy", x.h.Provider, via, out.URL.Scheme, out.URL.Host, out.Host, strconv.FormatInt(out.ContentLength-x.r.ContentLength, 10)},
		Method: out.Method, Path: out.URL.EscapedPath(), Query: out.URL.RawQuery, Dialect: x.rec.Record.Dialect, Header: out.Header, Body: p.request,
	}
	if x.usage != nil {
		q.Target = append(q.Target, "usage is asked for")
	}
	if x.account != nil {
		q.Target = append(q.Target, "account", string(x.account.ID[:]))
		q.Header = x.account.WithoutKey(out.Header)
	}
	hit, lead, refusal := x.h.site.Cache().Answer(x.ctx, q, p.options)
	switch p.lead = lead; {
	case refusal != "":
		p.refuse(refusal)
		return nil
	case hit == nil:
		x.rec.Record.AnswerCache = storage.CacheMiss
		return nil
	}
	if x.cutter != nil {
		x.cutter.Lift()
	}
	repetition := recording.Repeat(hit)
	x.rec.Reply(repetition)
	return repetition.Response(out)
}

// refuse tells a client that has asked for the cache why it does not answer.
func (p *repetition) refuse(why string) {
	x := p.of
	if p.options.Asked {
		x.warnings = append(x.warnings, "Service-Cache-Enabled: not used, "+why)
	}
}

// announce says whether the cache has answered.
func (p *repetition) announce(header http.Header) {
	x := p.of
	switch {
	case x.rec.Local.CacheHit() != nil:
		x.rec.Local.CacheHit().SetHeader(header)
	case p.options != nil:
		header["Service-Cache"] = []string{"MISS"}
		if p.request != nil && !p.intercepted {
			p.refuse("the route does not use the transport llm")
		}
	}
}

// save lets later calls have the answer, and those that wait go on. An answer that a budget has cut
// says nothing of the next one.
func (p *repetition) save() {
	x := p.of
	if !x.rec.Cut {
		var complete []byte
		if !x.answer.tap.Missed() {
			complete = x.answer.tap.Bytes()
		}
		p.lead.Save(&x.rec.Record, x.rec.Info(), complete, false)
	}
	p.lead.End()
}
