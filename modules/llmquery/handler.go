// Package llmquery is the handler http.handlers.llm_query: the query endpoints
// over what Weir recorded, one file each.
package llmquery

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler answers questions about the records of one store: about requests, users, sessions,
// scores and totals. It takes what is learned about requests and sessions later, such as scores
// and feedback, and keeps the views of a dashboard. GET /openapi.json describes all endpoints.
//
// Callers authenticate with `Authorization: Bearer <API key>` and see the records of their
// key's organisation alone; the description needs no key. Requests for other paths go to the
// next handler.
type Handler struct {
	// Store names the store to query. Keys of organisations in other stores are refused.
	// Default: the store `default`.
	Store string `json:"store,omitempty"`

	// Timeout bounds each query; a longer query gets a 504. Default: 10s.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// AllowPublic lets callers without a key see, but not change, the records of the
	// organisation `default`. Without it, a site without any key does not start.
	AllowPublic bool `json:"allow_public,omitempty"`

	app     *llmapp.App
	store   *stores.Store
	checker access.Checker
	mux     *http.ServeMux
	reads   hourOfReads
	logger  *zap.Logger

	// stopped ends when one of the servers does, which the handler has seen, or the
	// configuration.
	stopped context.Context
	stop    context.CancelFunc
	servers sync.Map
}

// defaultTimeout bounds queries where the configuration does not.
const defaultTimeout = 10 * time.Second

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_query", New: func() caddy.Module { return new(Handler) }}
}

// Provision sets the handler up.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = llmapp.BoundedLogger(ctx.Logger())
	h.stopped, h.stop = context.WithCancel(ctx)
	h.Store = cmp.Or(h.Store, stores.DefaultName)
	var err error
	if h.app, h.store, err = llmapp.Use(ctx, h.Store); err != nil {
		return err
	}
	h.checker = access.Checker{Keys: h.app.Authenticator(), Store: h.Store}
	if h.Timeout == 0 {
		h.Timeout = caddy.Duration(defaultTimeout)
	}

	h.mux = http.NewServeMux()
	for pattern, methods := range endpoints {
		h.mux.Handle(pattern, pathHandler{h, methods})
	}
	return nil
}

// Validate rejects a site that nobody could ask, or everybody.
func (h *Handler) Validate() error {
	if !h.AllowPublic && !h.app.Authenticator().HasKeys(h.Store) {
		return fmt.Errorf("no API key opens store %q: add `key` to the llm options, or say allow_public to serve its records to everybody", h.store.Name())
	}
	if h.Timeout < 0 {
		return fmt.Errorf("timeout: %s is negative", time.Duration(h.Timeout))
	}
	return nil
}

// UnmarshalCaddyfile sets the handler up from Caddyfile tokens. Syntax:
//
//	llm_query [<matcher>] {
//		store        <name>
//		timeout      <duration>
//		allow_public
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Options{
		"store":        directive.Text(&h.Store),
		"timeout":      directive.Duration(&h.Timeout),
		"allow_public": directive.Flag(&h.AllowPublic),
	}.Directive(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
