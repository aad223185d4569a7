package llmlog

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/money/cut"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/internal/streamusage"
	"github.com/weirhq/weir/modules/internal/tunnel"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// exchange is one call on its way. It is one allocation, and not pooled: a
// transport may still read the request body after the handler has returned, and
// the access log reads the record after that.
type exchange struct {
	h      *Handler
	r      *http.Request // what next is given: cancel ends its context
	cancel context.CancelFunc
	ctx    context.Context // the client's
	mark   recorded        // ctx for next
	rec    recording.Exchange

	request   clientRequest
	answer    providerAnswer
	writer    capture.Writer
	usage     *streamusage.Filter // takes out the chunk that nobody asked for
	addresses *addressWriter      // puts addresses of the proxy into the answer, nil unless it has some
	tunnel    *tunnel.Tunnel      // nil unless its events are read
	upstream  string              // provider by the upstream's host
	warnings  []string

	key     *access.Key        // nil for a call without one
	account *providers.Account // that pays, nil if the caller's own credentials pass
	limit   *llmapp.Budget     // that the caller set to its own calls, nil for none
	streams bool               // a stream was asked for; false if the request was not read
	cutter  *cut.Writer        // ends the stream, nil unless a budget may end it
	cache   cacheLookup

	returned bool  // false while a panic passes the next handler
	err      error // what the next handler returned
	failed   bool  // nothing was answered but err
}

func begin(h *Handler, r *http.Request) *exchange {
	x := &exchange{h: h, ctx: r.Context(), mark: recorded{r.Context()}}
	ctx, cancel := context.WithCancel(&x.mark)
	x.r, x.cancel = r.WithContext(ctx), cancel
	x.cache.x = x
	offerWebSocketAlone(x.r.Header)
	x.rec.Record.Path = r.URL.Path
	x.rec.Record.Dialect = observe.Detect(h.Provider, r.URL.Path)
	return x
}

// recorded is the context of a call that an llm_log records.
type recorded struct{ context.Context }

type recordedKey struct{}

func (c *recorded) Value(key any) any {
	if key == (recordedKey{}) {
		return true
	}
	return c.Context.Value(key)
}

// errRecorded refuses a call that would be recorded, and charged, twice. Which of the two has the
// settings that are meant, nobody can know.
var errRecorded = &plugins.Error{
	Status: http.StatusInternalServerError, Type: "server_error", Code: "server_error",
	Message: "Two `llm_log` would record and charge this call twice. `llm_proxy` has one of its own: remove the other from the Caddyfile.",
}

// offerWebSocketAlone leaves of the protocols that a client offers to change to the one that Weir
// reads. In another, such as HTTP/2 (https://bishopfox.com/blog/h2c-smuggling-request), the client
// would make calls that nobody records and no budget counts. A server need not take an offer (RFC
// 9110, section 7.8).
func offerWebSocketAlone(header http.Header) {
	offered := strings.ToLower(strings.Join(header.Values("Upgrade"), ","))
	switch {
	case strings.Contains(offered, "websocket"): // among others, or with a version
		header.Set("Upgrade", "websocket")
	case offered != "":
		header.Del("Upgrade")
	}
}

// admit reads and removes what the caller says of the call, and decides whose
// it is, and by which key.
func (x *exchange) admit() (*access.Key, *plugins.Error) {
	r := &x.rec.Record
	c := control.Read(x.r.Header, x.h.site.App.Headers(), r)
	control.RemoveTrailers(x.r, x.h.site.App.Headers())

	r.Org = x.h.Org
	if c.DryRun {
		return nil, plugins.Invalid("Service-Dry-Run", "A proxy has one target, and sends what it gets: only the gateway can tell where a call would go.")
	}
	key, err := x.h.authenticate(x.r, c)
	if err != nil {
		return nil, err
	}
	x.key = key
	owner := ""
	if key != nil {
		owner = key.Org()
		r.Org = owner
	}
	x.request.limit = int64(x.h.MaxBody)
	x.request.memory = x.h.site.App.Memory(owner)
	control.ReadEdge(x.r, x.h.CountryHeader, r)
	if key != nil {
		org := r.Org // the edge may have set another one
		key.Stamp(r)
		r.Org = org
	}
	x.h.site.Stamp(r, key)
	if r.Org == "" {
		r.Org = stores.DefaultName
	} else if x.h.site.App.Authenticator().StoreOf(r.Org) != x.h.site.Store {
		return nil, access.WrongRegion("organization")
	}
	if c.Refused != nil {
		return nil, c.Refused
	}
	x.cache.options = x.h.Cache.Options(&c.Cache)
	if x.limit, err = money.CallerLimit(r.Org, c.RateLimitPolicy); err != nil {
		return nil, err
	}
	control.SessionProperties(r)
	if x.h.Credentials == "" {
		r.Subscription = control.IsSubscription(x.r.Header)
	} else if err := x.takeAccount(); err != nil {
		return nil, err
	}

	c.OmitRequest = c.OmitRequest || x.h.omitRequest
	c.OmitResponse = c.OmitResponse || x.h.omitResponse
	if c.Cost {
		c.Warn("Service-Cost", "only the gateway tells it")
	}
	x.rec.Begin(x.ctx, x.h.site, c, x.cancel)
	x.warnings = append(x.warnings, c.Warnings...)
	return key, nil
}

// watch puts the exchange between the two sides.
func (x *exchange) watch(w http.ResponseWriter) {
	x.request.reader = observe.NewRequestReader(x.rec.Record.Dialect)
	x.rec.Account = lineage.Hash(x.r.Header.Get("Authorization"), x.r.Header.Get("X-Api-Key"), x.r.Header.Get("Api-Key"), x.r.Header.Get("X-Goog-Api-Key"))
	if x.account != nil {
		x.rec.Account = lineage.Hash(string(x.account.ID[:]))
	}
	x.request.watch(x.r, x.openRequest)
	if x.h.StreamUsage && x.rec.Record.Dialect == plugins.Chat {
		asked, warning := x.request.askForUsage(w, x.r)
		if asked {
			x.usage = streamusage.NewFilter(w)
			w = x.usage
		}
		if warning != "" {
			x.warnings = append(x.warnings, "stream_usage: not asked for, "+warning)
		}
	}
	if x.account != nil && x.operation().mayNameResults() {
		x.addresses = &addressWriter{
			ResponseWriter: w, batches: paths.Below(x.r, observe.MessageBatches), memory: x.request.memory.Answer(x.ctx, -1, maxAddressed),
		}
		w = x.addresses
	}
	x.writer.Watch(w, x.r.Method, x)
}

// openRequest prepares for the request body. What a CONNECT carries is a two-way
// stream, of which only the bytes are counted.
func (x *exchange) openRequest(t *capture.Tap, _ int64) {
	if x.r.Method == http.MethodConnect {
		return
	}
	if !x.rec.Record.RequestOmitted {
		x.rec.Kept.Request(&x.rec.Record, storage.Body{Type: x.r.Header.Get("Content-Type")}, 0, false)
		t.Keep(int64(x.h.MaxBody), x.r.ContentLength)
	}
	encoding := contentEncoding(x.r.Header)
	if x.operation().isUpload() && encoding == "" { // else the provider might read something else
		x.request.upload = &bound.Upload{Adder: x.adder()}
		t.Open("", x.request.upload)
		return
	}
	t.Open(encoding, x.request.reader)
}

// Early implements capture.Observer.
func (x *exchange) Early(header http.Header) { hideAccount(header, x.account) }

// Header implements capture.Observer.
func (x *exchange) Header(header http.Header, bodyless bool) {
	x.request.freeSent()
	hideAccount(header, x.account)
	if cache.Forbids(header) {
		x.cache.lead.Withhold()
	}
	x.announce(header)
	if _, ok := header["Content-Type"]; !ok {
		header["Content-Type"] = nil // keeps net/http from guessing one
	}
	x.locate()
	if x.writer.Status() == http.StatusNotFound {
		x.h.warnOfPrefix(x.rec.Record.Path)
	}
	if x.rec.Record.Subscription {
		x.rec.Record.RateLimits = storage.JSONText(control.RateLimits(header))
	}

	contentType := header.Get("Content-Type")
	hit := x.rec.Local.CacheHit()
	x.rec.Record.Stream = observe.IsStream(contentType, x.rec.Record.Path) || hit != nil && hit.Record.Stream
	switch x.r.Method {
	case http.MethodPost:
		if observe.IsChange(x.rec.Record.Path) { // or its record would be found in place of the call's that made it
			break
		}
		if hit != nil && contentEncoding(header) == "" { // the record has what the answer says
			break
		}
		// A GET of a stored response repeats the usage of the call that made it.
		x.answer.observer = observe.New(x.rec.Record.Dialect, x.vendor(), header)
		x.rec.Answer = x.answer.observer
	case http.MethodGet:
		if x.writer.Status() == http.StatusOK {
			x.answer.later = x.rec.Later(header, int64(x.h.MaxBody))
		}
	}
	if !x.rec.Record.ResponseOmitted && !x.writer.Tunnel() {
		x.rec.Kept.Response(&x.rec.Record, storage.Body{Type: contentType}, 0, false)
		x.answer.tap.Keep(int64(x.h.MaxBody), x.writer.Length())
	}
	x.answer.open(contentEncoding(header))
	if x.writer.Tunnel() {
		x.follow(header)
	}
	if bodyless {
		x.commit(storage.Complete)
	}
}

// Chunk implements capture.Observer: the client gets nothing that says that the
// answer has come to its end before the record stands.
func (x *exchange) Chunk(p []byte, last bool) {
	before := x.rec.Info().Phase
	x.rec.Cut = x.cutter != nil && x.cutter.Over()
	x.rec.Record.ResponseBytes += int64(len(p))
	x.answer.tap.Write(p)
	if hit := x.rec.Local.CacheHit(); hit != nil { // nobody reads where its stream ends
		last = last || x.rec.Record.ResponseBytes == int64(len(hit.Body.Data))
	}
	if last {
		x.answer.close(true)
	}
	x.rec.Record.Stream = x.rec.Record.Stream || x.rec.Info().Stream
	if x.rec.Record.Stream && !x.rec.Record.TimeToFirstToken.Valid {
		x.rec.MarkFirstToken()
	}
	switch now := x.rec.Info().Phase; {
	case last:
		end := x.finalState()
		x.commit(end)
		x.settle(end)
		x.rec.Commit(end)
		x.release() // what the client's next call needs
	case now > before && now == plugins.Ended:
		x.commit(x.finalState())
	case now > before:
		x.commit(storage.Interrupted)
	}
}

// announce sets our own response headers.
func (x *exchange) announce(header http.Header) {
	header["Service-Id"] = []string{x.rec.Record.ID.String()}
	if x.rec.Bill != nil {
		x.rec.Bill.SetCallerLimit(x.ctx, header)
	}
	x.cache.announce(header)
	if len(x.warnings) > 0 {
		header["Service-Warnings"] = x.warnings
	}
}

// upstreamOf returns the address of the upstream of a request, "" before one is selected.
func upstreamOf(ctx context.Context) (hostport string) {
	if repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		hostport, _ = repl.GetString("http.reverse_proxy.upstream.hostport")
	}
	return hostport
}

// locate records the upstream once it is selected.
func (x *exchange) locate() {
	if hit := x.rec.Local.CacheHit(); hit != nil {
		x.upstream = hit.Record.Provider
		return // the record has it
	}
	hostport := upstreamOf(x.ctx)
	x.upstream = observe.Provider(hostport)
	x.rec.Record.TargetURL = targetURL(hostport, x.r.URL)
	x.rec.Record.Provider = x.provider()
	if x.vendor() != x.h.Provider { // else begin has
		x.rec.Record.Dialect = observe.Detect(x.vendor(), x.rec.Record.Path)
	}
	host, _, _ := strings.Cut(hostport, ":")
	x.rec.Record.InferenceGeo = observe.Geography(x.vendor(), host, x.rec.Record.Path)
}

// targetURL is where a request went: the upstream that reverse_proxy chose,
// without one the path alone. Caddy tells no scheme, so it is https on port 443
// and http on any other.
func targetURL(hostport string, u *url.URL) string {
	target := u.EscapedPath()
	if u.RawQuery != "" {
		target += "?" + redact.Query(u.RawQuery)
	}
	if hostport == "" {
		return target
	}
	if host, ok := strings.CutSuffix(hostport, ":443"); ok {
		return "https://" + host + target
	}
	return "http://" + strings.TrimSuffix(hostport, ":80") + target
}

// follow reads the WebSocket that the answer with that header begins.
func (x *exchange) follow(header http.Header) {
	// HTTP/2 and HTTP/3 name the protocol of a CONNECT (RFC 8441, section 5), which
	// quic-go has in Proto.
	if !strings.EqualFold(header.Get("Upgrade"), "websocket") && x.r.Header.Get(":protocol") != "websocket" && x.r.Proto != "websocket" {
		return
	}
	if x.key != nil && x.key.Created() != nil {
		go x.h.watchKey(x.r.Context(), x.key, x.cancel)
	}
	t := tunnel.Open(&x.rec, header, tunnel.Options{
		MaxBody: int64(x.h.MaxBody), RequestModel: x.r.URL.Query().Get("model"), Logger: x.h.site.Logger,
	})
	if t == nil {
		return
	}
	x.tunnel = t
	x.writer.Follow(&t.Client, &t.Server)
	x.request.body.Look(func(body *capture.Tap, _ int64) { body.Open("", &t.Client) }) // of a CONNECT
}

// Interface guard
var _ capture.Observer = (*exchange)(nil)
