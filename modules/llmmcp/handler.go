// Package llmmcp is the handler http.handlers.llm_mcp_server: an MCP server over recorded requests, by
// the key of each caller. The command `weir mcp` has the same tools on standard input and output.
package llmmcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmcontrol"
	"github.com/weirhq/weir/modules/llmquery"
	"github.com/weirhq/weir/plugins"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

const (
	path = "/mcp"
	// maxRequest is the longest request, in bytes: arguments are filters and ids.
	maxRequest = 1 << 20
	// maxAnswer is the longest answer of the query API that a tool reads, in bytes.
	maxAnswer = 64 << 20
)

// Handler answers POST /mcp, by the Model Context Protocol over HTTP, with tools that read the records
// of one store. Callers need an API key or a token of the scope `query`, or of `metrics`: then they see
// no content. Nothing is kept from one request to the next. Requests for other paths go to the next
// handler.
type Handler struct {
	// Store names the store to read. Default: the store `default`.
	Store string `json:"store,omitempty"`

	app     *llmapp.App
	checker access.Checker
	query   llmquery.Handler
	keys    llmcontrol.Handler
	origin  *http.CrossOriginProtection
	server  http.Handler
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_mcp_server", New: func() caddy.Module { return new(Handler) }}
}

// Provision sets the handler up.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.Store = cmp.Or(h.Store, stores.DefaultName)
	h.query.Store, h.keys.Store = h.Store, h.Store
	if err := errors.Join(h.query.Provision(ctx), h.keys.Provision(ctx)); err != nil {
		return err
	}
	var err error
	if h.app, _, err = llmapp.Use(ctx, h.Store); err != nil {
		return err
	}
	h.checker = access.Checker{Keys: h.app.Authenticator(), Store: h.Store}
	h.origin = http.NewCrossOriginProtection()
	// DNS rebinding needs no protection: a foreign web page does not know the caller's key.
	h.server = mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server { return NewServer(h.askAs(r)) },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true, DisableLocalhostProtection: true})
	return nil
}

// Routes implements paths.Router.
func (*Handler) Routes() []paths.Route {
	return []paths.Route{{Method: http.MethodPost, Path: path}}
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if r.URL.Path != path {
		paths.Offer(r.Context(), []string{path})
		return next.ServeHTTP(w, r)
	}
	if err := h.origin.Check(r); err != nil {
		return apierror.Write(w, plugins.Responses, plugins.Rejected(http.StatusForbidden, "forbidden", "The request comes from another site."))
	}
	key, refused := h.checker.Admit(r, access.ScopeMetrics, "Authorization", "X-Api-Key")
	if refused != nil {
		return apierror.Write(w, plugins.Responses, refused)
	}
	if r.Method != http.MethodPost { // a client asks by GET whether the server calls back
		w.Header().Set("Allow", http.MethodPost)
		return apierror.Write(w, plugins.Responses, plugins.Rejected(http.StatusMethodNotAllowed, "method_not_allowed", "%s takes POST: this server keeps no sessions.", path))
	}
	body, err := intake.Reader{Memory: h.app.Memory(key.Org()), Limit: maxRequest}.Read(w, r)
	defer body.Release()
	if err == nil {
		err = body.CheckJSON(r.Context(), body.Bytes)
	}
	if err != nil {
		return apierror.Write(w, plugins.Responses, apierror.Of(err))
	}
	inner, err := http.NewRequestWithContext(access.WithKey(r, key).Context(), http.MethodPost, r.URL.String(), bytes.NewReader(body.Bytes))
	if err != nil {
		return err
	}
	inner.Header, inner.Host, inner.RemoteAddr = r.Header, r.Host, r.RemoteAddr
	h.server.ServeHTTP(w, inner)
	return nil
}

// askAs returns a function that calls the query and control APIs with the caller's key.
func (h *Handler) askAs(caller *http.Request) Ask {
	return func(_ context.Context, method, path string, body any) (gjson.Result, error) {
		var text []byte
		if body != nil {
			var err error
			if text, err = json.Marshal(body); err != nil {
				return gjson.Result{}, err
			}
		}
		// Handlers write into the variables of a request, and tools run at the same time.
		ctx := context.WithValue(caller.Context(), caddyhttp.VarsCtxKey, make(map[string]any))
		r, err := http.NewRequestWithContext(ctx, method, path, bytes.NewReader(text))
		if err != nil {
			return gjson.Result{}, err
		}
		r.Header.Set("Content-Type", "application/json")
		w := &answer{header: make(http.Header), status: http.StatusOK}
		err = h.query.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			return h.keys.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error {
				return fmt.Errorf("there is no %s", path)
			}))
		}))
		switch {
		case err != nil:
			return gjson.Result{}, err
		case w.status >= 300:
			return gjson.Result{}, errors.New(cmp.Or(gjson.GetBytes(w.body, "error").Str, http.StatusText(w.status)))
		}
		return gjson.GetBytes(w.body, "data"), nil
	}
}

// answer is the http.ResponseWriter for an answer that a tool reads.
type answer struct {
	header http.Header
	status int
	body   []byte
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) { a.status = status }

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if len(a.body)+len(p) > maxAnswer {
		return 0, errors.New("the answer is too long: ask for less")
	}
	a.body = append(a.body, p...)
	return len(p), nil
}

// UnmarshalCaddyfile sets the handler up from Caddyfile tokens. Syntax:
//
//	llm_mcp_server [<matcher>] {
//		store <name>
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Options{"store": directive.Text(&h.Store)}.Directive(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
	_ paths.Router                = (*Handler)(nil)
)
