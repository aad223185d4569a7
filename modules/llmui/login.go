package llmui

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/access/identity"
	"github.com/weirhq/weir/modules/internal/paths"
)

// Login lets people log in at an issuer of OpenID Connect.
type Login struct {
	// Issuer is the URL of an issuer that the app llm has an identity of: its claims say
	// which organisation a person sees, and need to give the scope `query`, or `metrics` for a view without content.
	Issuer string `json:"issuer"`

	// ClientID is the name of the dashboard at the issuer, which needs to know the address
	// of the dashboard with `/api/login/callback` after it.
	ClientID string `json:"client_id"`

	// ClientSecret is the client's secret; best a placeholder like `{env.OIDC_SECRET}`.
	// Default: the client is a public one.
	ClientSecret string `json:"client_secret,omitempty"`
}

const (
	loginPath    = "/api/login"
	callbackPath = "/api/login/callback"
	// loginLimit is how long a login may take.
	loginLimit = 10 * time.Minute
	// maxView is the longest query of the dashboard's address that a login leads back to,
	// in bytes.
	maxView = 2 << 10
)

func (l *Login) provision() (*identity.Login, error) {
	secret, err := caddy.NewReplacer().ReplaceOrErr(l.ClientSecret, true, true)
	if err != nil {
		return nil, errors.New("login: the placeholder of the client's secret has no value")
	}
	return &identity.Login{Issuer: identity.NewIssuer(l.Issuer, []string{l.ClientID}), ClientID: l.ClientID, ClientSecret: secret}, nil
}

// attempt is what the browser keeps while a person logs in.
type attempt struct {
	identity.Attempt
	View string // the query of the dashboard's address
}

// isLogin reports whether a request belongs to a login at the issuer.
func (h *Handler) isLogin(r *http.Request) bool {
	return h.login != nil && r.Method == http.MethodGet && (r.URL.Path == loginPath || r.URL.Path == callbackPath)
}

// serveLogin sends the browser to the issuer, or begins the session of who comes back.
func (h *Handler) serveLogin(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path == callbackPath {
		return h.serveCallback(w, r)
	}
	begun, address, err := h.login.Begin(r.Context(), paths.Base(r, loginPath)+callbackPath)
	if err != nil {
		return h.failLogin(w, err)
	}
	view := r.URL.RawQuery
	if len(view) > maxView {
		view = ""
	}
	cookie, err := json.Marshal(attempt{begun, view})
	if err != nil {
		return err
	}
	http.SetCookie(w, loginCookie(r, base64.RawURLEncoding.EncodeToString(cookie), loginLimit))
	return redirect(w, address)
}

func (h *Handler) serveCallback(w http.ResponseWriter, r *http.Request) error {
	var a attempt
	if c, err := r.Cookie(loginCookie(r, "", 0).Name); err == nil {
		if cookie, err := base64.RawURLEncoding.DecodeString(c.Value); err == nil {
			_ = json.Unmarshal(cookie, &a) // an attempt without a state does not end well
		}
	}
	http.SetCookie(w, loginCookie(r, "", -1))
	site := paths.Base(r, callbackPath)
	claims, err := h.login.End(r.Context(), a.Attempt, site+callbackPath, r.URL.Query())
	if err != nil {
		return h.failLogin(w, err)
	}
	key, err := h.checker.Keys.KeyOfBearer(r.Context(), claims)
	if err != nil {
		return refuse(w, http.StatusForbidden, "You are logged in at the issuer, but "+err.Error()+".")
	}
	if _, refused := h.checker.Admit(access.WithKey(r, key), access.ScopeMetrics); refused != nil {
		return refuse(w, refused.Status, "You are logged in at the issuer, but may not see records. "+refused.Message)
	}
	http.SetCookie(w, cookie(r, begin(session{bearer: claims}, time.Now()), idleLimit))
	view := url.URL{RawQuery: a.View}
	return redirect(w, site+"/"+view.String())
}

func (h *Handler) failLogin(w http.ResponseWriter, err error) error {
	if errors.Is(err, identity.ErrUnavailable) {
		h.logger.Error("nobody can log in", zap.String("issuer", h.Login.Issuer), zap.Error(err))
		return refuse(w, http.StatusServiceUnavailable, "The issuer does not answer. Try again later.")
	}
	return refuse(w, http.StatusForbidden, "The login failed: "+err.Error()+".")
}

// refuse tells a person why there is no session.
func refuse(w http.ResponseWriter, status int, message string) error {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, message, status)
	return nil
}

func redirect(w http.ResponseWriter, address string) error {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// loginCookie is the cookie of an attempt to log in. Its SameSite is Lax: a redirect from the
// issuer does not bring back a Strict cookie.
func loginCookie(r *http.Request, value string, age time.Duration) *http.Cookie {
	c := cookie(r, value, age)
	c.Name += "-login"
	c.SameSite = http.SameSiteLaxMode
	return c
}
