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
	cache       *cache.Options  // nil if neither the client nor the site wants it
	request     *plugins.Object // the request, nil if the cache is not asked
	intercepted bool            // the request was shown to the cache
	lead        *cache.Lead     // ends with the call; nil if no other call can get the answer
}

// askCache has the cache asked for an answer when the request leaves. Only then is it known what
// the provider would see of the request: the route may add credentials, rewrite it, and choose
// among upstreams.
func (x *exchange) askCache(body *plugins.Object) {
	switch r := &x.Record; {
	case r.RequestOmitted || r.ResponseOmitted:
		x.refuseCache("content is omitted")
	case x.h.site.Cache() == nil:
		x.refuseCache("the cache does not open")
	default:
		x.request = body
		x.r = x.r.WithContext(transport.WithInterceptor(x.r.Context(), x.intercept))
	}
}

// intercept answers the request that the provider would get from the cache. It waits for an equal
// call. Several requests of a call are those that the route tries at one upstream after another.
func (x *exchange) intercept(out *http.Request, via string) *http.Response {
	x.intercepted = true
	x.lead.Withhold() // the upstream before this one has failed
	q := &cache.Request{
		Org: x.Record.Org, Target: []string{"proxy", x.h.Provider, via, out.URL.Scheme, out.URL.Host, out.Host, strconv.FormatInt(out.ContentLength-x.r.ContentLength, 10)},
		Method: out.Method, Path: out.URL.EscapedPath(), Query: out.URL.RawQuery, Dialect: x.Record.Dialect, Header: out.Header, Body: x.request,
	}
	if x.usage != nil {
		q.Target = append(q.Target, "usage is asked for")
	}
	if x.account != nil {
		q.Target = append(q.Target, "account", string(x.account.ID[:]))
		q.Header = x.account.WithoutKey(out.Header)
	}
	if refusal := q.Refusal(); refusal != "" {
		x.refuseCache(refusal)
		return nil
	}
	var hit *cache.Hit
	if hit, x.lead = x.h.site.Cache().Answer(x.ctx, q, x.cache); hit == nil {
		x.Record.AnswerCache = storage.CacheMiss
		return nil
	}
	if x.cutter != nil {
		x.cutter.Lift()
	}
	repetition := recording.Repeat(hit)
	x.Reply(repetition)
	return repetition.Response(out)
}

// refuseCache tells a client that has asked for the cache why it does not answer.
func (x *exchange) refuseCache(why string) {
	if x.cache.Asked {
		x.warnings = append(x.warnings, "Service-Cache-Enabled: not used, "+why)
	}
}

// announceCache says whether the cache has answered.
func (x *exchange) announceCache(header http.Header) {
	switch {
	case x.Hit != nil:
		x.Hit.SetHeader(header)
	case x.cache != nil:
		header["Service-Cache"] = []string{"MISS"}
		if x.request != nil && !x.intercepted {
			x.refuseCache("the route does not use the transport llm")
		}
	}
}

// saveAnswer lets later calls have the answer, and those that wait go on. A caller who has left, or
// whose budget has cut the answer, says nothing of the next one.
func (x *exchange) saveAnswer(end storage.EndState) {
	switch {
	case x.lead == nil, end == storage.ClientAborted, x.Cut:
	case end != storage.Complete, x.response.Missed():
		x.lead.Withhold()
	default:
		x.lead.Save(&x.Record, x.Info(), x.response.Bytes(), false)
	}
	x.lead.End()
}
