package llmlog

import (
	"cmp"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// repetition is what Weir's cache does for a call.
type repetition struct {
	cache *cache.Options // nil if neither the client nor the site wants it
	hit   *cache.Hit     // the answer, nil if the provider is asked
	lead  *cache.Lead    // ends with the call; nil if no other call can get the answer
	// answeredBy is the upstream that has answered, nil before it has.
	answeredBy *string
}

// learnedUpstream is the one upstream of a handler, which Caddy tells only when it has chosen it.
// If a handler has several, nobody knows which one would answer an equal request.
type learnedUpstream struct {
	host    atomic.Pointer[string] // nil as long as none has answered
	several atomic.Bool
}

// isOnly reports whether a host is the one upstream, as far as is known.
func (u *learnedUpstream) isOnly(host string) bool {
	if known := u.host.Load(); known != nil && *known != host {
		u.several.Store(true)
	}
	return !u.several.Load()
}

func (u *learnedUpstream) learn(host string) { u.host.CompareAndSwap(nil, &host) }

// target says which provider gets the request, and on whose account. The client's own credentials
// are among the header fields.
func (x *exchange) target() []string {
	if x.account != nil {
		return []string{"account", string(x.account.ID[:]), x.account.BaseURL}
	}
	host := cmp.Or(x.answeredBy, x.h.upstream.host.Load())
	if host == nil {
		return []string{"unknown", x.h.Provider, x.r.Host, x.r.RequestURI}
	}
	return []string{"upstream", *host, x.h.Provider, x.r.Host, x.r.RequestURI, strconv.FormatBool(x.h.StreamUsage)}
}

// answerAgain asks the cache for an answer to the request. It waits for an equal call.
func (x *exchange) answerAgain(body *plugins.Object) {
	r := &x.Record
	q := &cache.Request{
		Org: r.Org, Target: x.target, Method: x.r.Method, Path: x.r.URL.EscapedPath(), Query: x.r.URL.RawQuery, Dialect: r.Dialect, Header: x.r.Header, Body: body,
	}
	var refusal string
	switch {
	case r.RequestOmitted || r.ResponseOmitted:
		refusal = "content is omitted"
	case x.account == nil && x.h.upstream.several.Load():
		refusal = "the proxy has several upstreams"
	default:
		refusal = q.Refusal()
	}
	if refusal != "" {
		x.refuseCache(refusal)
		return
	}
	answers := x.h.site.Cache()
	if answers == nil {
		x.refuseCache("the cache does not open")
		return
	}
	if x.hit, x.lead = answers.Answer(x.ctx, q, x.cache); x.hit != nil {
		x.Repeat(x.hit.Record)
	} else {
		r.AnswerCache = storage.CacheMiss
	}
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
	case x.hit != nil:
		header["Service-Cache"] = []string{"HIT"}
		header["Service-Cache-Bucket-Idx"] = []string{strconv.Itoa(x.hit.Bucket)}
	case x.cache != nil:
		header["Service-Cache"] = []string{"MISS"}
	}
}

// repeat is the handler that gives the answer in the place of the provider.
func (x *exchange) repeat() caddyhttp.Handler {
	return caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		body := x.hit.Body
		header := w.Header()
		if body.Type != "" {
			header["Content-Type"] = []string{body.Type}
		}
		if !x.hit.Record.Stream {
			header["Content-Length"] = []string{strconv.Itoa(len(body.Data))}
		}
		w.WriteHeader(http.StatusOK)
		if _, err := w.Write(body.Data); err != nil || !x.hit.Record.Stream {
			return nil //nolint:nilerr // the client is gone
		}
		_ = http.NewResponseController(w).Flush() // else the server would announce a length
		return nil
	})
}

// saveAnswer lets later calls have the answer, and those that wait go on.
func (x *exchange) saveAnswer(end storage.EndState) {
	if x.lead == nil {
		return
	}
	left := end == storage.ClientAborted || x.Refusal != nil && !x.failed
	if end == storage.Complete && !left && !x.response.Missed() && !x.Cut {
		x.answeredBy = new(x.hostport())
		if u := &x.h.upstream; x.account != nil || u.isOnly(*x.answeredBy) {
			x.lead.Save(&x.Record, x.Info(), x.response.Bytes(), false)
			u.learn(*x.answeredBy) // who waits now finds the answer of the one upstream
		}
	}
	x.lead.End(left)
}
