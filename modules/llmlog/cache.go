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

// cacheLookup looks for the answer of a call in Weir's cache, and saves the answer of the provider there.
type cacheLookup struct {
	x           *exchange       // the call
	options     *cache.Options  // nil if neither the client nor the site wants the cache
	request     *plugins.Object // the body of the request, nil if the cache is not asked
	intercepted bool            // the cache was asked
	lead        *cache.Lead     // ends with the call; nil if no other call can get the answer
}

// ask prepares for asking the cache when the request leaves. Only then is it known what the
// provider would get: the route may add credentials, rewrite the request, and choose among
// upstreams.
func (l *cacheLookup) ask(body *plugins.Object) {
	x := l.x
	switch r := &x.rec.Record; {
	case r.RequestOmitted || r.ResponseOmitted:
		l.refuse("content is omitted")
	case x.h.site.Cache() == nil:
		l.refuse("the cache does not open")
	default:
		l.request = body
		x.r = x.r.WithContext(transport.WithInterceptor(x.r.Context(), l.intercept))
	}
}

// intercept returns the answer from the cache to the request out, which the provider would get, nil if
// the cache has none. It waits for an equal call that is in flight. A call has several such requests
// if the route tries one upstream after another.
func (l *cacheLookup) intercept(out *http.Request, via string) *http.Response {
	x := l.x
	l.intercepted = true
	l.lead.Withhold() // the upstream before this one has failed
	q := &cache.Request{
		Org: x.rec.Record.Org, Target: []string{"proxy", x.h.Provider, via, out.URL.Scheme, out.URL.Host, out.Host, strconv.FormatInt(out.ContentLength-x.r.ContentLength, 10)},
		Method: out.Method, Path: out.URL.EscapedPath(), Query: out.URL.RawQuery, Dialect: x.rec.Record.Dialect, Header: out.Header, Body: l.request,
	}
	if x.usage != nil {
		q.Target = append(q.Target, "usage is asked for")
	}
	if x.account != nil {
		q.Target = append(q.Target, "account", string(x.account.ID[:]))
		q.Header = x.account.WithoutKey(out.Header)
	}
	hit, lead, refusal := x.h.site.Cache().Answer(x.ctx, q, l.options)
	switch l.lead = lead; {
	case refusal != "":
		l.refuse(refusal)
		return nil
	case hit == nil:
		x.rec.Record.AnswerCache = storage.CacheMiss
		return nil
	}
	if x.cutter != nil {
		x.cutter.Lift()
	}
	reply := recording.Repeat(hit)
	x.rec.Reply(reply)
	return reply.Response(out)
}

// refuse warns a client that has asked for the cache that it is not used, and why.
func (l *cacheLookup) refuse(why string) {
	x := l.x
	if l.options.Asked {
		x.warnings = append(x.warnings, "Service-Cache-Enabled: not used, "+why)
	}
}

// announce sets the header fields that say whether the answer is from the cache.
func (l *cacheLookup) announce(header http.Header) {
	x := l.x
	switch {
	case x.rec.Local.CacheHit() != nil:
		x.rec.Local.CacheHit().SetHeader(header)
	case l.options != nil:
		header["Service-Cache"] = []string{"MISS"}
		if l.request != nil && !l.intercepted {
			l.refuse("the route does not use the transport llm")
		}
	}
}

// save saves the answer for later calls, and ends the waiting of equal calls. It does not save an
// answer that a budget has cut: the budget may admit the next call as a whole.
func (l *cacheLookup) save() {
	x := l.x
	if !x.rec.Cut {
		var complete []byte
		if !x.answer.tap.Missed() {
			complete = x.answer.tap.Bytes()
		}
		l.lead.Save(&x.rec.Record, x.rec.Info(), complete, false)
	}
	l.lead.End()
}
