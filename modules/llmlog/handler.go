// Package llmlog is the handler that records the calls to language models which
// pass through it, without changing them.
package llmlog

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins/observe"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler records every call to a language model that passes through it on the
// way to another handler, usually `reverse_proxy`: model, tokens, cost, timing,
// how it ended and, unless that is omitted, what was said. Bytes pass in both
// directions as they are. A record stands on disk before the client has the end
// of its answer.
//
// The client steers it by control headers, which are not passed on, like
// `Service-User-Id` and `Service-Omit-Request: true`. What the edge knows
// better it sets with `vars`: `llm_org`, `llm_user_id`, `llm_session_id`,
// `llm_country_code` and `llm_threat` win over headers. Answers carry the
// record's id in `Service-Id`, and what was wrong with the control headers in
// `Service-Warnings`.
//
// Of a WebSocket whose dialect has responses in it, each response is recorded too, and of
// the results of a batch each call.
//
// Upstream failures are answered in JSON, the way the provider would put it.
//
// These placeholders are set, and empty where nobody knows:
//
// Placeholder | Description
// ------------|-------------
// `{http.llm.id}` | The record's id
// `{http.llm.org}` | The organisation that the record belongs to
// `{http.llm.upstream}` | The host and port of the provider, with `credentials platform`
// `{http.llm.provider}` | The provider's name
// `{http.llm.model}` | The model that the call counts for
// `{http.llm.request_model}` | The model that was asked for
// `{http.llm.response_model}` | The model that the provider says answered
// `{http.llm.user_id}` | The user
// `{http.llm.session_id}` | The session
// `{http.llm.stream}` | Whether the answer was a stream
// `{http.llm.prompt_tokens}` | Tokens charged as input
// `{http.llm.completion_tokens}` | Tokens charged as output
// `{http.llm.total_tokens}` | The sum of both
// `{http.llm.cost}` | The cost in US dollars
// `{http.llm.latency}` | Milliseconds to the end of the answer
// `{http.llm.time_to_first_token}` | Milliseconds to the first content of a stream
// `{http.llm.end_state}` | `complete`, `client_aborted`, `upstream_aborted` or `failed`; `interrupted` before the end
//
// All but the first three and those from control headers are set when the answer
// has ended, in time for `log_append`. The access log gets them as the object
// `llm`.
type Handler struct {
	// Provider names the provider, lower-case, like `openai`. Default: the name for the
	// upstream's host, else `custom`.
	Provider string `json:"provider,omitempty"`

	// Store names the store of the records. Default: `default`.
	Store string `json:"store,omitempty"`

	// Org is the organisation of calls without a key. It must belong to the
	// store. Default: `default`.
	Org string `json:"org,omitempty"`

	// RequireKey refuses calls without a `Service-Auth: Bearer <key>`.
	RequireKey bool `json:"require_key,omitempty"`

	// Credentials is `platform` to call the provider with the credentials of the caller's
	// organisation, or of the platform, instead of the caller's. Then Provider is the label of
	// a provider of the app `llm`. Calls need a key with the scope `gateway`, sent like the
	// vendor's key, and `reverse_proxy` goes to `{http.llm.upstream}` with the transport
	// `llm_account`. Default: the caller's own credentials pass.
	Credentials string `json:"credentials,omitempty"`

	// MaxBody is how many bytes of each body are kept at most, without their
	// Content-Encoding, 1 or more. Metrics do not depend on it. Default: 8 MiB.
	MaxBody directive.Size `json:"max_body,omitempty"`

	// Mask says what is masked in the content that is stored of this site, besides what is masked
	// of the organisation. Default: nothing.
	Mask []*mask.Rule `json:"mask,omitempty"`

	// Omit lists the content that is never kept, `request` or `response`, whatever the
	// client's headers say.
	Omit []string `json:"omit,omitempty"`

	// StreamUsage asks for the token usage of streamed chat completions if the client did
	// not. It adds `stream_options.include_usage` to the request, and the client does not
	// get the additional chunk. Such answers come without Content-Encoding.
	StreamUsage bool `json:"stream_usage,omitempty"`

	// Errors is `pass` to hand upstream failures to `handle_errors`. Caddy
	// then logs them with the request's headers. Default: the handler answers them.
	Errors string `json:"errors,omitempty"`

	// Cache lets Weir's cache answer calls whose clients do not ask for it. Default: it answers
	// those with `Service-Cache-Enabled: true`.
	Cache *cache.Config `json:"cache,omitempty"`

	// CountryHeader names the request header that has the client's country, like
	// `CF-IPCountry`. Default: none.
	CountryHeader string `json:"country_header,omitempty"`

	site                      *recording.Site
	checker                   access.Checker
	omitRequest, omitResponse bool
	unstripped                sync.Once // warns of a prefix
}

const (
	defaultMaxBody = 8 << 20
	errorsPass     = "pass"
)

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_log", New: func() caddy.Module { return new(Handler) }}
}

// Provision sets the handler up.
func (h *Handler) Provision(ctx caddy.Context) error {
	site, store, err := recording.NewSite(ctx, h.Store, h.Mask)
	if err != nil {
		return err
	}
	h.site = site
	app, name := h.site.App, h.site.Store
	h.checker = access.Checker{Keys: app.Authenticator(), Store: name}
	if org, b := app.Money().Diverting(name); b != nil {
		return app.At(fmt.Errorf("budget %s of org %s uses another model at a part of its limit, and a proxy sends calls as they are: give the proxy another store, or the budget alerts alone", b.Name, org), "org "+org, "budget "+b.Name)
	}
	app.Metrics().NameProvider(h.Provider)
	if err := h.provisionCredentials(); err != nil {
		return err
	}
	recording.Poll(site, store)
	if home := app.Authenticator().StoreOf(cmp.Or(h.Org, stores.DefaultName)); home != name && !h.RequireKey && h.Credentials == "" {
		return fmt.Errorf("records without a key would be of organisation %q, which lives in store %q, not %q: name one of this store with org, or say require_key",
			cmp.Or(h.Org, stores.DefaultName), home, name)
	}
	h.MaxBody = cmp.Or(h.MaxBody, defaultMaxBody)
	for _, side := range h.Omit {
		switch side {
		case "request":
			h.omitRequest = true
		case "response":
			h.omitResponse = true
		default:
			return fmt.Errorf("omit %q: want request or response", side)
		}
	}
	return nil
}

// Validate checks the settings.
func (h *Handler) Validate() error {
	if h.Provider != strings.ToLower(h.Provider) {
		return fmt.Errorf("provider %q: names are lower-case", h.Provider)
	}
	if err := h.Cache.Validate(); err != nil {
		return err
	}
	if h.Errors != "" && h.Errors != errorsPass {
		return fmt.Errorf("errors %q: want %s, or nothing", h.Errors, errorsPass)
	}
	if h.Org != "" && h.site.App.Authenticator().StoreOf(h.Org) != h.site.Store {
		return fmt.Errorf("org %s belongs to the store %s, not to %s", h.Org, h.site.App.Authenticator().StoreOf(h.Org), h.site.Store)
	}
	return nil
}

// errNothing is a call that no handler answered, for which the server would answer
// 200: reverse_proxy gives up in silence when the provider upgrades a connection
// that nobody asked it to, and a route may have no handler behind this one.
var errNothing = caddyhttp.Error(http.StatusBadGateway, errors.New("nothing was answered"))

// Routes implements paths.Router: whatever the handler behind it answers passes. These are
// a call in each dialect that a client may speak, or that Weir pays for.
func (h *Handler) Routes() (all []paths.Route) {
	for _, ending := range observe.Endings() {
		if path := "/" + strings.TrimPrefix(ending, "/"); h.Credentials == "" || slices.Contains(payable, observe.Detect("", path)) {
			all = append(all, paths.Route{Method: http.MethodPost, Path: path})
		}
	}
	if h.Credentials != "" {
		all = append(all, batchRoutes...)
	}
	return all
}

// warnOfPrefix tells the operator, once, that a provider may not know a path because the
// route's own prefix stands before it.
func (h *Handler) warnOfPrefix(path string) {
	prefix := "/" + h.Provider + "/"
	if h.Provider == "" || !strings.HasPrefix(path, prefix) {
		return
	}
	h.unstripped.Do(func() {
		h.site.Logger.Warn("the provider answers 404 to a path that begins with its name: take the prefix off, as handle_path "+prefix+"* does", zap.String("path", path))
	})
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.Context().Value(recordedKey{}) != nil {
		return apierror.Write(w, observe.Detect(h.Provider, r.URL.Path), errRecorded)
	}
	x := begin(h, r)
	key, err := x.admit()
	if err != nil {
		x.cancel()
		return apierror.Write(w, x.operation().clientDialect(), err)
	}
	defer x.end()
	x.watch(w)
	if err := x.reserve(key); err != nil {
		d := x.operation().clientDialect()
		return x.reply(recording.Refuse(d, apierror.To(r, d, apierror.Of(err))))
	}
	x.err = x.pass(next)
	hideAccount(w.Header(), x.account) // the trailers, which the server sends next
	x.returned = true
	if x.err == nil && x.writer.Status() == 0 && !x.writer.Tunnel() {
		x.err = errNothing
	}
	if x.err != nil {
		return x.answerError()
	}
	return nil
}

// reply gives the client an answer of Weir itself.
func (x *exchange) reply(a *recording.LocalReply) error {
	x.returned = true
	x.rec.Reply(a)
	return a.Write(&x.writer)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
