// Package llmotlp is the handler http.handlers.llm_otlp: it makes records of the
// calls that an application reports by OpenTelemetry, when its traffic does not pass
// through Weir.
package llmotlp

import (
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler takes traces by OTLP/HTTP, `POST /v1/traces` in protobuf or JSON, and
// keeps one record for each span that is a call of a model. It understands
// OpenTelemetry's GenAI conventions, old and new, OpenLLMetry, OpenInference and
// Langfuse. Other spans are counted and dropped. Requests for other paths go to the
// next handler; `/api/public/otel/v1/traces`, to which Langfuse's SDKs send, is the
// same as `/v1/traces`.
//
// Callers authenticate with `Authorization: Bearer <API key>`, or with the key as the
// password of HTTP Basic; it has the scope `log`, and the records belong to its
// organisation. Control headers
// travel as span attributes `traceloop.association.properties.Service-User-Id`
// and so on.
//
// A span that was sent before makes no second record.
type Handler struct {
	// Store names the store of the records. Keys of organisations in other stores are
	// refused. Default: the store `default`.
	Store string `json:"store,omitempty"`

	// Mask says what is masked in the content that is stored of this site, besides what is masked
	// of the organisation. Default: nothing.
	Mask []*mask.Rule `json:"mask,omitempty"`

	// MaxRequest bounds a request, in bytes without Content-Encoding, 1 or more.
	// Default: 16 MiB.
	MaxRequest directive.Size `json:"max_request,omitempty"`

	site    *recording.Site
	checker access.Checker
	store   *stores.Store
}

const defaultMaxRequest = 16 << 20

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_otlp", New: func() caddy.Module { return new(Handler) }}
}

// Provision sets the handler up.
func (h *Handler) Provision(ctx caddy.Context) error {
	var err error
	if h.site, h.store, err = recording.NewSite(ctx, h.Store, h.Mask); err != nil {
		return err
	}
	h.checker = access.Checker{Keys: h.site.App.Authenticator(), Store: h.site.Store}
	if h.MaxRequest == 0 {
		h.MaxRequest = defaultMaxRequest
	}
	return llmapp.RegisterMetrics(ctx.GetMetricsRegistry(), spans, ignoredSpans)
}

// Validate rejects a site that nobody could send to.
func (h *Handler) Validate() error {
	if !h.site.App.Authenticator().HasKeys(h.site.Store) {
		return fmt.Errorf("no API key opens store %q: add `key` to the llm options", h.site.Store)
	}
	return nil
}

// tracesPath is the path for traces in OTLP over HTTP.
const tracesPath = "/v1/traces"

// Routes implements paths.Router.
func (*Handler) Routes() []paths.Route {
	return []paths.Route{{Method: http.MethodPost, Path: tracesPath}, {Method: http.MethodPost, Path: langfusePath}}
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.URL.Path != tracesPath && r.URL.Path != langfusePath {
		paths.Offer(r.Context(), []string{tracesPath})
		return next.ServeHTTP(w, r)
	}
	e := encodingOf(r)
	answer, err := h.receive(w, r, e)
	if err != nil {
		return h.refuse(w, r, e, err)
	}
	return e.write(w, http.StatusOK, answer)
}

// UnmarshalCaddyfile sets the handler up from Caddyfile tokens. Syntax:
//
//	llm_otlp [<matcher>] {
//		store       <name>
//		max_request <size>
//		mask        <kinds...> {
//			...
//		}
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Options{
		"store":       directive.Text(&h.Store),
		"mask":        llmapp.MaskOption(&h.Mask),
		"max_request": directive.Bytes(&h.MaxRequest),
	}.Directive(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
