package llmlog

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/intake"
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

	recording.Exchange

	writer    capture.Writer
	usage     *streamusage.Filter // takes out the chunk that nobody asked for
	addressed *addressed          // puts addresses of the proxy in, nil unless the answer has some

	requestSide
	answerSide
	payment
	repetition repetition

	tunnel *tunnel.Tunnel // nil unless its events are read

	upstream string // provider by the upstream's host
	warnings []string

	outcome
}

// requestSide reads the request as it passes.
type requestSide struct {
	ahead  intake.Body       // what was read of the body before it passes
	late   *plugins.Error    // the body did not come in time, nil if it did
	memory *admission.Memory // that such bodies take
	body   capture.Body
	reader *observe.RequestReader
	upload *bound.Upload // the calls of a batch in the file that the request uploads, nil for any other
}

// answerSide reads the answer as it passes.
type answerSide struct {
	response capture.Tap
	observer plugins.Observer // nil unless the response is one of a call
	closed   bool             // the observer, since the response ended
	later    recording.Later  // what the answer to a GET tells of earlier calls, nil if nothing
}

// payment is who pays for a call, and what bounds the cost.
type payment struct {
	key     *access.Key        // nil for a call without one
	limit   *llmapp.Budget     // that the caller set to its own calls, nil for none
	account *providers.Account // that pays, nil if the caller's own credentials pass
	streams bool               // a stream was asked for; false if the request was not read
	cutter  *cut.Writer        // ends the stream, nil unless a budget may end it
}

// outcome is how a call left the next handler.
type outcome struct {
	returned bool  // false while a panic passes
	err      error // what the next handler returned
	failed   bool
}

func begin(h *Handler, r *http.Request) *exchange {
	x := &exchange{h: h, ctx: r.Context()}
	ctx, cancel := context.WithCancel(x.ctx)
	x.r, x.cancel = r.WithContext(ctx), cancel
	x.repetition.of = x
	offerWebSocketAlone(x.r.Header)
	x.Record.Path = r.URL.Path
	x.Record.Dialect = observe.Detect(h.Provider, r.URL.Path)
	return x
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
	r := &x.Record
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
	x.memory = x.h.site.App.Memory(owner)
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
	x.repetition.options = x.h.Cache.Options(&c.Cache)
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
	x.Begin(x.ctx, x.h.site, c, x.cancel)
	x.warnings = append(x.warnings, c.Warnings...)
	return key, nil
}

// watch puts the exchange between the two sides.
func (x *exchange) watch(w http.ResponseWriter) {
	x.reader = observe.NewRequestReader(x.Record.Dialect)
	x.Account = lineage.Hash(x.r.Header.Get("Authorization"), x.r.Header.Get("X-Api-Key"), x.r.Header.Get("Api-Key"), x.r.Header.Get("X-Goog-Api-Key"))
	if x.account != nil {
		x.Account = lineage.Hash(string(x.account.ID[:]))
	}
	if hasBody(x.r) {
		x.body.ReadCloser = x.r.Body //nolint:forbidigo // the body passes as it comes
		x.body.Length = x.r.ContentLength
		x.body.Look(x.openRequest)
		x.r.Body = &x.body //nolint:forbidigo // likewise
		x.body.KeepWire(int64(x.h.MaxBody))
		x.r.GetBody = x.bodyAgain
	}
	if x.h.StreamUsage && x.Record.Dialect == plugins.Chat && x.askForUsage(w) {
		x.usage = streamusage.NewFilter(w)
		w = x.usage
	}
	if x.account != nil && x.operation().mayNameResults() {
		x.addressed = &addressed{
			ResponseWriter: w, batches: paths.Below(x.r, observe.MessageBatches), memory: x.memory.Answer(x.ctx, -1, maxAddressed),
		}
		w = x.addressed
	}
	x.writer.Watch(w, x.r.Method, x)
}

// hasBody reports whether a request has a body.
func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody //nolint:forbidigo // nothing is read
}

var errNotKept = errors.New("the body of the request is longer than max_body, so that it cannot be sent again")

// bodyAgain is GetBody of the request, for a transport that has lost its connection.
func (x *exchange) bodyAgain() (io.ReadCloser, error) {
	body, ok := x.body.Again()
	if !ok {
		return nil, errNotKept
	}
	return body, nil
}

// contentEncoding joins the Content-Encoding headers, as a list may be split.
func contentEncoding(header http.Header) string {
	return strings.Join(header["Content-Encoding"], ", ")
}

// openRequest prepares for the request body. What a CONNECT carries is a two-way
// stream, of which only the bytes are counted.
func (x *exchange) openRequest(t *capture.Tap, _ int64) {
	if x.r.Method == http.MethodConnect {
		return
	}
	if !x.Record.RequestOmitted {
		x.Kept.Request(&x.Record, storage.Body{Type: x.r.Header.Get("Content-Type")}, 0, false)
		t.Keep(int64(x.h.MaxBody), x.r.ContentLength)
	}
	encoding := contentEncoding(x.r.Header)
	if x.operation().isUpload() && encoding == "" { // else the provider might read something else
		x.upload = &bound.Upload{Adder: x.adder()}
		t.Open("", x.upload)
		return
	}
	t.Open(encoding, x.reader)
}

// Early implements capture.Observer.
func (x *exchange) Early(header http.Header) { hideAccount(header, x.account) }

// Header implements capture.Observer.
func (x *exchange) Header(header http.Header, bodyless bool) {
	x.ahead.Release() // it was sent
	x.body.FreeWire()
	hideAccount(header, x.account)
	if cache.Forbids(header) {
		x.repetition.lead.Withhold()
	}
	x.announce(header)
	if _, ok := header["Content-Type"]; !ok {
		header["Content-Type"] = nil // keeps net/http from guessing one
	}
	x.locate()
	if x.writer.Status() == http.StatusNotFound {
		x.h.warnOfPrefix(x.Record.Path)
	}
	if x.Record.Subscription {
		x.Record.RateLimits = storage.JSONText(control.RateLimits(header))
	}

	contentType := header.Get("Content-Type")
	x.Record.Stream = observe.IsStream(contentType, x.Record.Path)
	var reader capture.Reader
	switch x.r.Method {
	case http.MethodPost:
		if observe.IsChange(x.Record.Path) { // or its record would be found in place of the call's that made it
			break
		}
		// A GET of a stored response repeats the usage of the call that made it.
		x.observer = observe.New(x.Record.Dialect, x.Record.Provider, header)
		x.Answer, reader = x.observer, x.observer
	case http.MethodGet:
		if x.writer.Status() != http.StatusOK {
			break
		}
		if x.later = x.Later(header, int64(x.h.MaxBody)); x.later != nil {
			reader = x.later
		}
	}
	if !x.Record.ResponseOmitted && !x.writer.Tunnel() {
		x.Kept.Response(&x.Record, storage.Body{Type: contentType}, 0, false)
		x.response.Keep(int64(x.h.MaxBody), x.writer.Length())
	}
	x.response.Open(contentEncoding(header), reader)
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
	before := x.Info().Phase
	x.Cut = x.cutter != nil && x.cutter.Over()
	x.Record.ResponseBytes += int64(len(p))
	x.response.Write(p)
	if last {
		x.closeResponse(true)
	}
	x.Record.Stream = x.Record.Stream || x.Info().Stream
	if x.Record.Stream && !x.Record.TimeToFirstToken.Valid {
		x.MarkFirstToken()
	}
	switch now := x.Info().Phase; {
	case last:
		end := x.ended()
		x.commit(end)
		x.settle(end)
		x.Commit(end)
		x.release() // what the client's next call needs
	case now > before && now == plugins.Ended:
		x.commit(x.ended())
	case now > before:
		x.commit(storage.Interrupted)
	}
}

// closeResponse says that the answer ended, and whether all of it has passed.
func (x *exchange) closeResponse(whole bool) {
	x.response.Close()
	if x.later != nil {
		x.later.Close(whole)
		x.later = nil
	}
	if x.observer != nil && !x.closed {
		x.observer.Close()
		x.closed = true
	}
}

// announce sets our own response headers.
func (x *exchange) announce(header http.Header) {
	header["Service-Id"] = []string{x.Record.ID.String()}
	if x.Bill != nil {
		x.Bill.SetCallerLimit(x.ctx, header)
	}
	x.repetition.announce(header)
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
	if x.Hit != nil {
		x.upstream = x.Hit.Record.Provider
		return // the record has it
	}
	hostport := upstreamOf(x.ctx)
	x.upstream = observe.Provider(hostport)
	x.Record.TargetURL = targetURL(hostport, x.r.URL)
	x.Record.Provider = x.provider()
	if x.Record.Provider != x.h.Provider { // else begin has
		x.Record.Dialect = observe.Detect(x.Record.Provider, x.Record.Path)
	}
	host, _, _ := strings.Cut(hostport, ":")
	x.Record.InferenceGeo = observe.Geography(x.Record.Provider, host, x.Record.Path)
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
	t := tunnel.Open(&x.Exchange, header, tunnel.Options{
		MaxBody: int64(x.h.MaxBody), RequestModel: x.r.URL.Query().Get("model"), Logger: x.h.site.Logger,
	})
	if t == nil {
		return
	}
	x.tunnel = t
	x.writer.Follow(&t.Client, &t.Server)
	x.body.Look(func(body *capture.Tap, _ int64) { body.Open("", &t.Client) }) // of a CONNECT
}

// Interface guard
var _ capture.Observer = (*exchange)(nil)
