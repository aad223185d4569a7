// Package llmcontrol is the handler http.handlers.llm_control. With it, administrators change projects,
// members, API keys, budgets and alerts while Weir runs. They read who changed what, the usage, the
// state of budgets, and the alerts that fire.
package llmcontrol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler administers the organisations that live in one store: their projects, members, service
// accounts, API keys, budgets and limits. Keys and budgets have routes of their own (/v1/keys,
// /v1/budgets, /v1/alerts, /v1/audit, and /v1/key, which tells any caller what its key may do).
// /v1/organization/ has the routes of OpenAI's administration API. GET /v1/keys/openapi.json
// describes all routes.
//
// All routes but /v1/key and /v1/keys/openapi.json need a key of the scope `admin`, and are about
// the organisation of that key alone. Requests for other paths go to the next handler.
type Handler struct {
	// Store names the store. Default: the store `default`.
	Store string `json:"store,omitempty"`

	app     *llmapp.App
	store   *stores.Store
	checker access.Checker
	mux     *http.ServeMux
	logger  *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_control", New: func() caddy.Module { return new(Handler) }}
}

// Provision sets the handler up.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.Store = cmp.Or(h.Store, stores.DefaultName)
	var err error
	if h.app, h.store, err = llmapp.Use(ctx, h.Store); err != nil {
		return err
	}
	h.checker = access.Checker{Keys: h.app.Authenticator(), Store: h.Store}
	h.logger = llmapp.BoundedLogger(ctx.Logger())
	h.mux = http.NewServeMux()
	h.mux.Handle(http.MethodGet+" "+descriptionPath, description)
	for _, e := range endpoints {
		h.mux.HandleFunc(e.method+" "+e.path, func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, e) })
	}
	return nil
}

// Routes implements paths.Router.
func (h *Handler) Routes() (all []paths.Route) {
	for _, e := range endpoints {
		all = append(all, paths.Route{Method: e.method, Path: e.path})
	}
	return append(all, paths.Route{Method: http.MethodGet, Path: descriptionPath})
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if _, pattern := h.mux.Handler(r); pattern != "" {
		h.mux.ServeHTTP(w, r)
		return nil
	}
	var allowed []string
	for _, other := range []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost} {
		if _, pattern := h.mux.Handler(&http.Request{Method: other, URL: r.URL, Host: r.Host}); pattern != "" {
			allowed = append(allowed, other)
		}
	}
	if len(allowed) > 0 {
		methods := strings.Join(allowed, ", ")
		w.Header().Set("Allow", methods)
		fail(w, endpoint{route: route{path: r.URL.Path}}, &plugins.Error{
			Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: fmt.Sprintf("%s takes %s, not %s", r.URL.Path, methods, r.Method),
		})
		return nil
	}
	served := make([]string, len(endpoints))
	for i, e := range endpoints {
		served[i] = e.path
	}
	paths.Offer(r.Context(), served)
	return next.ServeHTTP(w, r)
}

// maxBody is the longest body, in bytes.
const maxBody = 256 << 10

// call is one authorised call.
type call struct {
	ctx  context.Context
	r    *http.Request
	body []byte
	head http.Header           // of the answer
	key  *access.Key           // of the caller
	org  *control.Organisation // of the key
	// project is the project that the path names, nil if the path names no project.
	project *control.Project
	app     *llmapp.App
	store   *stores.Store
}

func (h *Handler) serve(w http.ResponseWriter, r *http.Request, e endpoint) {
	data, err := h.answer(w, r, e)
	switch {
	case err != nil:
	case e.openAI():
		_ = apierror.WriteJSON(w, e.status, data) // the client may be gone
		return
	default:
		_ = apierror.Envelope{Data: data}.Write(w, e.status) // the client may be gone
		return
	}
	refused, ok := errors.AsType[*plugins.Error](err)
	switch {
	case ok:
	case errors.Is(err, control.ErrNotFound):
		refused = &plugins.Error{Status: http.StatusNotFound, Message: err.Error()}
	case errors.Is(err, control.ErrTaken), errors.Is(err, control.ErrArchived), errors.Is(err, control.ErrFull):
		refused = &plugins.Error{Status: http.StatusConflict, Message: err.Error()}
	case errors.Is(err, control.ErrNoPlace), errors.Is(err, control.ErrOwnsItself):
		refused = &plugins.Error{Status: http.StatusBadRequest, Message: err.Error()}
	case errors.Is(err, credits.ErrUnavailable):
		h.logger.Error("the credits and budgets cannot be read", zap.String("path", r.URL.Path), zap.Error(err))
		refused = &plugins.Error{Status: http.StatusServiceUnavailable, Message: "the credits and budgets cannot be read now." + journal.Advice(err)}
	case r.Context().Err() != nil:
		return // nobody is there to answer
	default:
		h.logger.Error("a call of an administrator failed", zap.String("path", r.URL.Path), zap.Error(err))
		refused = &plugins.Error{Status: http.StatusServiceUnavailable, Message: "what the call asks for cannot be read or written now." + journal.Advice(err)}
	}
	fail(w, e, refused)
}

// fail answers with an error, in the format of the endpoint.
func fail(w http.ResponseWriter, e endpoint, refused *plugins.Error) {
	if e.openAI() {
		if refused.Type == "" {
			refused.Type = "invalid_request_error"
			if refused.Status >= http.StatusInternalServerError {
				refused.Type = "server_error"
			}
		}
		_ = apierror.Write(w, plugins.Chat, refused)
		return
	}
	apierror.SetHeader(w.Header(), refused)
	_ = apierror.Envelope{Error: &refused.Message}.Write(w, refused.Status)
}

func (h *Handler) answer(w http.ResponseWriter, r *http.Request, e endpoint) (data any, err error) {
	key, refused := h.checker.Admit(r, e.scope, "Authorization", "X-Api-Key", "Api-Key")
	if refused != nil {
		if !e.openAI() {
			refused.Message = refused.Code + ": " + refused.Message
		}
		return nil, refused
	}
	c := &call{ctx: r.Context(), r: r, head: w.Header(), key: key, app: h.app, store: h.store}
	if r.Method == http.MethodPost || r.Method == http.MethodPatch {
		received, err := intake.Reader{Memory: h.app.Memory(key.Org()), Limit: maxBody}.Read(w, r)
		defer received.Release()
		if err != nil {
			return nil, err
		}
		c.body = received.Bytes
	}
	release := h.store.Hold()
	defer release()
	log, err := h.store.Control()
	if err != nil {
		return nil, err
	}
	address, _ := caddyhttp.GetVar(c.ctx, caddyhttp.ClientIPVarKey).(string)
	c.org = &control.Organisation{Log: log, Name: key.Org(), By: control.Actor{Key: key.Name(), Address: address}}
	if id := r.PathValue("project"); id != "" {
		p, err := control.Get[control.Project](c.ctx, c.org, id)
		if err != nil {
			return nil, err
		}
		c.project = p.Object
	}
	return e.serve(c)
}

// bad is the error for a request that says something wrong.
func bad(format string, args ...any) error {
	return &plugins.Error{Status: http.StatusBadRequest, Message: fmt.Sprintf(format, args...)}
}

// decode reads the body into v, which has all of its fields.
func (c *call) decode(v any) error {
	if len(c.body) == 0 {
		return nil
	}
	if err := intake.Decode(c.body, v); err != nil {
		return bad("%v", err)
	}
	return nil
}

// UnmarshalCaddyfile sets the handler up from Caddyfile tokens. Syntax:
//
//	llm_control [<matcher>] {
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
