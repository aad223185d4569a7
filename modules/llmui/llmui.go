// Package llmui is the handler http.handlers.llm_ui: the dashboard, pages that ask
// the public query API with the organisation of a browser's session.
package llmui

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/encode"
	_ "github.com/caddyserver/caddy/v2/modules/caddyhttp/encode/gzip"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/access/identity"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/modules/llmcontrol"
	"github.com/weirhq/weir/modules/llmquery"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler serves the dashboard of one store, at whatever path it stands:
//
//	GET    /             the pages
//	POST   /api/session  begins a session with {"key": "<API key>"}
//	GET    /api/session  who the session's caller is, and what the caller may do
//	DELETE /api/session  ends the session
//	GET    /api/login    sends the browser to the issuer of Login, which sends it back to
//	GET    /api/login/callback
//	GET    /api/system   the state of the store, for the organisation `default`
//	       /api/v1/...   the query API and the key API, with the rights of the session's key
//
// A session begins with an API key of the scope `query` or `metrics`, or at an issuer. The browser does
// not keep the key: it gets a cookie that scripts cannot read and other sites cannot send.
// Sessions end after 12 hours without use, after 7 days, when the key is no longer
// configured, and with the process. Requests for other paths go to the next
// handler.
type Handler struct {
	// Store names the store to show. Default: the store `default`.
	Store string `json:"store,omitempty"`

	// TrustUser is a placeholder like `{http.auth.user.id}`. A request for which
	// it is not empty needs no session: Caddy has authenticated its user, who sees
	// the records of Org. Default: everybody logs in with an API key.
	TrustUser string `json:"trust_user,omitempty"`

	// Login lets people log in at an issuer. Default: people log in with API keys.
	Login *Login `json:"login,omitempty"`

	// Org is the organisation of trusted users. Default: `default`.
	Org string `json:"org,omitempty"`

	app     *llmapp.App
	store   *stores.Store
	checker access.Checker
	query   llmquery.Handler
	keys    llmcontrol.Handler
	encoder encode.Encode // compresses answers of the API
	origin  *http.CrossOriginProtection
	login   *identity.Login // nil without Login
	logger  *zap.Logger
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_ui", New: func() caddy.Module { return new(Handler) }}
}

// Provision sets the handler up.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.Store = cmp.Or(h.Store, stores.DefaultName)
	h.Org = cmp.Or(h.Org, stores.DefaultName)
	h.query.Store, h.keys.Store = h.Store, h.Store
	h.encoder.EncodingsRaw = caddy.ModuleMap{"gzip": json.RawMessage("{}")}
	if err := errors.Join(h.query.Provision(ctx), h.keys.Provision(ctx), h.encoder.Provision(ctx)); err != nil {
		return err
	}
	var err error
	if h.app, h.store, err = llmapp.Use(ctx, h.Store); err != nil {
		return err
	}
	h.checker = access.Checker{Keys: h.app.Authenticator(), Store: h.Store}
	h.origin, h.logger = http.NewCrossOriginProtection(), llmapp.BoundedLogger(ctx.Logger())
	if h.Login == nil {
		return nil
	}
	h.login, err = h.Login.provision()
	return err
}

// Validate rejects a dashboard that nobody could enter, or that would show an
// organisation of another store.
func (h *Handler) Validate() error {
	if h.TrustUser == "" && !h.checker.Keys.HasKeys(h.Store) {
		return fmt.Errorf("no API key opens store %q: add `key` to the llm options, or let Caddy authenticate users and name them with trust_user", h.Store)
	}
	if h.Login != nil && !h.checker.Keys.Trusts(h.Login.Issuer) {
		return fmt.Errorf("login: no identity of the issuer %s says what its people may see: add `identity jwt %[1]s` to the llm options", h.Login.Issuer)
	}
	if h.TrustUser != "" && !strings.Contains(h.TrustUser, "{") {
		return fmt.Errorf("trust_user %q trusts everybody: name a placeholder that is empty without a user, such as {http.auth.user.id}", h.TrustUser)
	}
	if home := h.checker.Keys.StoreOf(h.Org); home != h.Store {
		return fmt.Errorf("org %s belongs to the store %s, not to %s", h.Org, home, h.Store)
	}
	return nil
}

// Routes implements paths.Router.
func (h *Handler) Routes() []paths.Route {
	all := []paths.Route{
		{Method: http.MethodGet, Path: "/api/session"}, {Method: http.MethodPost, Path: "/api/session"},
		{Method: http.MethodDelete, Path: "/api/session"}, {Method: http.MethodGet, Path: "/api/system"},
	}
	if h.login != nil {
		all = append(all, paths.Route{Method: http.MethodGet, Path: loginPath}, paths.Route{Method: http.MethodGet, Path: callbackPath})
	}
	for _, r := range slices.Concat(h.query.Routes(), h.keys.Routes()) {
		if strings.HasPrefix(r.Path, "/v1/") {
			r.Path = "/api" + r.Path
			all = append(all, r)
		}
	}
	return all
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if f := files()[r.URL.Path]; f != nil && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		f.serve(w, r)
		return nil
	}
	path, ok := strings.CutPrefix(r.URL.Path, "/api/")
	if !ok || path != "session" && path != "system" && !strings.HasPrefix(path, "v1/") && !h.isLogin(r) {
		return next.ServeHTTP(w, r)
	}
	if err := h.origin.Check(r); err != nil {
		return fail(w, http.StatusForbidden, "the request comes from another site")
	}
	if path == "session" {
		return h.serveSession(w, r)
	}
	if h.isLogin(r) {
		return h.serveLogin(w, r)
	}
	key := h.keyOf(r)
	if key == nil {
		return fail(w, http.StatusUnauthorized, "the session has ended: log in again")
	}
	if path == "system" {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			return fail(w, http.StatusMethodNotAllowed, "the system takes GET")
		}
		return h.serveSystem(w, key)
	}
	r = access.WithKey(r, key)
	r.URL.Path, r.URL.RawPath = "/"+path, strings.TrimPrefix(r.URL.RawPath, "/api")
	return h.encoder.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
		return h.query.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
			return h.keys.ServeHTTP(w, r, caddyhttp.HandlerFunc(func(w http.ResponseWriter, r *http.Request) error {
				return fail(w, http.StatusNotFound, "there is no "+r.URL.Path)
			}))
		}))
	}))
}

// keyOf returns the key with whose rights a request is served, nil if it has no session.
func (h *Handler) keyOf(r *http.Request) *access.Key {
	if user := h.trustedUser(r); user != "" {
		return h.checker.Keys.KeyOf(h.Org, user)
	}
	s, ok := sessionOf(token(r), time.Now())
	if !ok {
		return nil
	}
	key, _ := h.checker.Keys.KeyByHash(s.key)
	if s.key == "" {
		key, _ = h.checker.Keys.KeyOfBearer(r.Context(), s.bearer)
	}
	if key == nil || key.Store() != h.Store || !key.Allows(access.ScopeMetrics) {
		return nil
	}
	return key
}

// trustedUser returns the user whom Caddy has authenticated, "" if there is none.
func (h *Handler) trustedUser(r *http.Request) string {
	repl, _ := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if repl == nil {
		return ""
	}
	return repl.ReplaceAll(h.TrustUser, "")
}

// sessionInfo tells a browser what its session may do.
type sessionInfo struct {
	Organization string `json:"organization"`
	Login        bool   `json:"login"`   // it can log out
	Admin        bool   `json:"admin"`   // it can administer keys
	Content      bool   `json:"content"` // it sees requests and answers
	Write        bool   `json:"write"`   // it can rate requests, and save views
}

func newSessionInfo(key *access.Key, login bool) sessionInfo {
	return sessionInfo{key.Org(), login, key.Allows(access.ScopeAdmin), key.Allows(access.ScopeQuery), key.Allows(access.ScopeWrite)}
}

// loginOptions tell a browser how it can log in, besides with an API key.
type loginOptions struct {
	Issuer string `json:"issuer,omitempty"` // "" if people log in with API keys alone
}

func (h *Handler) serveSession(w http.ResponseWriter, r *http.Request) error {
	switch r.Method {
	case http.MethodGet:
		key := h.keyOf(r)
		if key == nil {
			problem, options := "log in with an API key", &loginOptions{}
			if h.login != nil {
				options.Issuer = h.Login.Issuer
			}
			return answer(w, http.StatusUnauthorized, options, &problem)
		}
		return answer(w, http.StatusOK, newSessionInfo(key, h.trustedUser(r) == ""), nil)
	case http.MethodPost:
		return h.logIn(w, r)
	case http.MethodDelete:
		end(token(r))
		http.SetCookie(w, cookie(r, "", -1))
		return answer(w, http.StatusOK, struct{}{}, nil)
	}
	w.Header().Set("Allow", "DELETE, GET, POST")
	return fail(w, http.StatusMethodNotAllowed, "the session takes DELETE, GET and POST")
}

// maxLogin bounds the body of a login, in bytes.
const maxLogin = 4 << 10

func (h *Handler) logIn(w http.ResponseWriter, r *http.Request) error {
	if contentType, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); contentType != "application/json" {
		return fail(w, http.StatusUnsupportedMediaType, "send the key as application/json")
	}
	var body struct{ Key string }
	if err := (intake.Reader{Memory: h.app.Memory(""), Limit: maxLogin}).ReadJSON(w, r, &body); err != nil {
		return fail(w, http.StatusBadRequest, `the body must be {"key": "<API key>"}`)
	}
	// Behind balancers that the server trusts, the address of the browser, not of the balancer.
	address, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	now := time.Now()
	if !mayTry(address, now) {
		w.Header().Set("Retry-After", "60")
		return fail(w, http.StatusTooManyRequests, "too many wrong keys from this address: try again in a minute")
	}
	key, refused := h.checker.Check(r, body.Key, access.ScopeMetrics)
	if refused != nil {
		noteFailure(address, now)
		return fail(w, refused.Status, refused.Message)
	}
	http.SetCookie(w, cookie(r, begin(session{key: key.Hash()}, now), ageLimit))
	return answer(w, http.StatusOK, newSessionInfo(key, true), nil)
}

// answer writes the envelope of the query API.
func answer(w http.ResponseWriter, status int, data any, problem *string) error {
	return apierror.Envelope{Data: data, Error: problem}.Write(w, status)
}

func fail(w http.ResponseWriter, status int, message string) error {
	return answer(w, status, nil, &message)
}

// UnmarshalCaddyfile sets the handler up from Caddyfile tokens. Syntax:
//
//	llm_ui [<matcher>] {
//		store      <name>
//		login      <issuer> <client id> [<client secret>]
//		trust_user <placeholder>
//		org        <name>
//	}
func (h *Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Options{
		"store":      directive.Text(&h.Store),
		"login":      h.parseLogin,
		"trust_user": directive.Text(&h.TrustUser),
		"org":        directive.Text(&h.Org),
	}.Directive(d)
}

func (h *Handler) parseLogin(d *caddyfile.Dispenser) error {
	args := d.RemainingArgs()
	if len(args) < 2 || len(args) > 3 {
		return d.Err("login takes an issuer, the id of the client there, and its secret if it has one, as in `login https://login.example.com weir {env.OIDC_SECRET}`")
	}
	h.Login = &Login{Issuer: args[0], ClientID: args[1]}
	if len(args) == 3 {
		h.Login.ClientSecret = args[2]
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddy.Validator             = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
