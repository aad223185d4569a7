package llmlog

import (
	"context"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// exchange is one call on its way. It is one allocation, and not pooled: a
// transport may still read the request body after the handler has returned, and
// the access log reads the record after that.
type exchange struct {
	h       *Handler
	r       *http.Request // what next is given: cancel ends its context
	cancel  context.CancelFunc
	ctx     context.Context // the client's
	started time.Time

	recorder recording.Recorder
	release  func()
	claimed  bool // the record's id was the client's choice

	writer capture.Writer
	usage  *usageFilter // takes out the chunk that nobody asked for
	body   capture.Body
	reader *observe.RequestReader

	response  capture.Tap
	extractor plugins.Observer
	seen      *plugins.ResponseInfo

	upstream string // provider by the upstream's host
	warnings []string

	record    storage.Record
	content   storage.Content
	committed mark
	lost      bool

	// returned is false while a panic passes; err is what next returned.
	returned bool
	err      error
	failed   bool
}

// unseen is the extraction of an exchange without a response.
var unseen plugins.ResponseInfo

func begin(h *Handler, r *http.Request) *exchange {
	x := &exchange{h: h, ctx: r.Context(), started: time.Now(), seen: &unseen}
	ctx, cancel := context.WithCancel(x.ctx)
	x.r, x.cancel = r.WithContext(ctx), cancel
	x.record.CreatedAt = storage.Millis(x.started)
	x.record.Path = r.URL.Path
	x.record.Dialect = observe.Detect(h.Provider, r.URL.Path)
	return x
}

// admit reads and removes what the caller says of the call, and decides whose
// it is.
func (x *exchange) admit() *refusal {
	r := &x.record
	c := control.Read(x.r.Header, x.h.app.Headers(), r)
	control.RemoveTrailers(x.r, x.h.app.Headers())

	r.Org = x.h.Org
	if refused := x.authenticate(c); refused != nil {
		return refused
	}
	control.ReadEdge(x.r, x.h.CountryHeader, r)
	if r.Org == "" {
		r.Org = llmapp.DefaultName
	} else if x.h.app.StoreOf(r.Org) != x.h.store {
		return &refusal{http.StatusForbidden, "wrong_region", "the key belongs to another region than this address"}
	}
	control.SessionProperties(r)

	r.RequestOmitted = c.OmitRequest || x.h.omitRequest
	r.ResponseOmitted = c.OmitResponse || x.h.omitResponse
	if !r.RequestOmitted {
		x.content.Inputs = c.Inputs
	}

	var err error
	if x.recorder, x.release, err = x.h.open(x.cancel); err != nil {
		x.h.logger.Error("no record is kept: the store does not open", zap.String("store", x.h.store), zap.Error(err))
		x.recorder, x.release = recording.Nowhere{}, func() {}
	}
	x.recorder.Begin(r)
	r.ID, x.claimed = recording.Identify(x.ctx, x.recorder, c)
	x.warnings = c.Warnings
	return nil
}

func (x *exchange) authenticate(c *control.Controls) *refusal {
	if !c.Keyed {
		if x.h.RequireKey {
			return &refusal{http.StatusUnauthorized, "missing_api_key", "send an API key in the header Service-Auth: Bearer <key>"}
		}
		return nil
	}
	key, ok := x.h.app.Authenticate(c.Secret)
	if !ok {
		return &refusal{http.StatusUnauthorized, "invalid_api_key", "the API key in Service-Auth is not known"}
	}
	if !key.Allows(llmapp.ScopeLog) {
		return &refusal{http.StatusForbidden, "insufficient_scope", "the API key in Service-Auth lacks the scope " + llmapp.ScopeLog}
	}
	x.record.Org, x.record.AuthHash = key.Org(), key.Hash()
	return nil
}

// watch puts the exchange between the two sides.
func (x *exchange) watch(w http.ResponseWriter) {
	x.reader = observe.NewRequestReader(x.record.Dialect)
	if x.r.Body != nil && x.r.Body != http.NoBody {
		x.body.ReadCloser = x.r.Body
		x.body.Look(x.openRequest)
		x.r.Body = &x.body
	}
	if x.h.StreamUsage && x.record.Dialect == plugins.Chat && x.askForUsage() {
		x.usage = newUsageFilter(w)
		w = x.usage
	}
	x.writer.Watch(w, x.r.Method, x)

	recording.Placeholders(x.ctx, &x.record)
}

// openRequest prepares for the request body. What a CONNECT carries is a two-way
// stream, of which only the bytes are counted.
func (x *exchange) openRequest(t *capture.Tap, _ int64) {
	if x.r.Method == http.MethodConnect {
		return
	}
	if !x.record.RequestOmitted {
		x.content.Request.Type = x.r.Header.Get("Content-Type")
		t.Keep(x.h.MaxBody, x.r.ContentLength)
	}
	t.Open(contentEncoding(x.r.Header), x.reader)
}

// Header implements capture.Observer.
func (x *exchange) Header(header http.Header, bodyless bool) {
	x.announce(header)
	if _, ok := header["Content-Type"]; !ok {
		header["Content-Type"] = nil // keeps net/http from guessing one
	}
	x.locate()

	contentType := header.Get("Content-Type")
	x.record.Stream = isStream(contentType, x.record.Path)
	var reader capture.Reader
	if x.r.Method == http.MethodPost {
		// A GET of a stored response repeats the usage of the call that made it.
		x.extractor = observe.New(x.record.Dialect, x.record.Provider, contentType)
		x.seen = x.extractor.Info()
		reader = x.extractor
	}
	if !x.record.ResponseOmitted && !x.writer.Tunnel() {
		x.content.Response.Type = contentType
		x.response.Keep(x.h.MaxBody, x.writer.Length())
	}
	x.response.Open(contentEncoding(header), reader)
	if bodyless {
		x.commit()
	}
}

// Chunk implements capture.Observer: the client gets nothing that says that the
// answer has come to its end before the record stands.
func (x *exchange) Chunk(p []byte, last bool) {
	before := x.seen.Phase
	x.record.ResponseBytes += int64(len(p))
	x.response.Write(p)
	if last {
		x.closeResponse()
	}
	if x.record.Stream && x.seen.Content && !x.record.TimeToFirstToken.Valid {
		x.record.TimeToFirstToken = plugins.Known(time.Since(x.started).Milliseconds())
	}
	if last || x.seen.Phase > before {
		x.commit()
	}
}

func (x *exchange) closeResponse() {
	x.response.Close()
	if x.extractor != nil {
		x.extractor.Close()
		x.extractor = nil
	}
}

// announce sets our own response headers.
func (x *exchange) announce(header http.Header) {
	header["Service-Id"] = []string{x.record.ID.String()}
	if len(x.warnings) > 0 {
		header["Service-Warnings"] = x.warnings
	}
}

// locate finds out where the request went, once somebody knows.
func (x *exchange) locate() {
	var hostport string
	if repl, ok := x.ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		hostport, _ = repl.GetString("http.reverse_proxy.upstream.hostport")
	}
	x.upstream = observe.Provider(hostport)
	x.record.TargetURL = targetURL(hostport, x.r.URL)
	x.record.Provider = x.provider()
	x.record.Dialect = observe.Detect(x.record.Provider, x.record.Path)
}

// Interface guard
var _ capture.Observer = (*exchange)(nil)
