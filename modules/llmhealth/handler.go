// Package llmhealth is the handler http.handlers.llm_health: probes on a site, for
// supervisors and load balancers.
package llmhealth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/directive"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/paths"
	"github.com/weirhq/weir/modules/internal/stores"
)

func init() {
	caddy.RegisterModule(new(Handler))
}

// Handler answers three probes, by GET and HEAD:
//
//	/health/live       200 as long as calls are forwarded
//	/health/recording  200 when every call is recorded, else 503
//	/health/ready      200 when records can be queried soon after, too, else 503
//
// For each store, the last two say whether the journal can be written (else records are
// being lost) and whether the backend takes records (else they wait in the journal).
// An answer gives no reasons, because reasons name files. The reasons are in the log when
// readiness ends, and at `/llm/health/ready` of the admin endpoint. An answer is at most a second old.
// Requests for other paths go to the next handler.
type Handler struct {
	logger *zap.Logger

	mu      sync.Mutex // one check at a time: it writes a file
	checked time.Time
	state   state
}

const (
	livePath      = "/health/live"
	recordingPath = "/health/recording"
	readyPath     = "/health/ready"

	// maxAge bounds how often callers make the handler write to the disk.
	maxAge = time.Second
)

// state is the body of an answer.
type state struct {
	Ready      bool         `json:"ready"`
	Forwarding string       `json:"forwarding"`
	Stores     []storeState `json:"stores"`
}

// losing reports whether records are being lost.
func (s state) losing() bool {
	return slices.ContainsFunc(s.Stores, func(s storeState) bool { return s.Journal != word(nil) })
}

type storeState struct {
	Store   string `json:"store"`
	Journal string `json:"journal"`
	Backend string `json:"backend"`
}

// CaddyModule returns the Caddy module information.
func (*Handler) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.llm_health", New: func() caddy.Module { return new(Handler) }}
}

// Provision sets the handler up.
func (h *Handler) Provision(ctx caddy.Context) error {
	h.logger = ctx.Logger()
	h.state.Ready = true
	return nil
}

// Routes implements paths.Router.
func (*Handler) Routes() (all []paths.Route) {
	for _, path := range []string{livePath, recordingPath, readyPath} {
		all = append(all, paths.Route{Method: http.MethodGet, Path: path})
	}
	return all
}

// ServeHTTP implements caddyhttp.MiddlewareHandler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	path := r.URL.Path
	if path != livePath && path != recordingPath && path != readyPath {
		paths.Offer(r.Context(), []string{livePath, recordingPath, readyPath})
		return next.ServeHTTP(w, r)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		message := path + " takes GET, not " + r.Method
		return apierror.Envelope{Error: &message}.Write(w, http.StatusMethodNotAllowed)
	}
	var answer any = map[string]string{"forwarding": word(nil)}
	status := http.StatusOK
	if path != livePath {
		s := h.check(r)
		answer = s
		if !s.Ready && (path == readyPath || s.losing()) {
			status = http.StatusServiceUnavailable
		}
	}
	return apierror.WriteJSON(w, status, answer)
}

func (h *Handler) check(r *http.Request) state {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.checked) < maxAge {
		return h.state
	}
	all := stores.CheckHealth(context.WithoutCancel(r.Context())) // others get the answer too
	problem := stores.Ready(all)
	if problem != nil && h.state.Ready && !errors.Is(problem, stores.ErrStarting) {
		h.logger.Error("not ready", zap.Error(problem))
	}
	h.state = state{Ready: problem == nil, Forwarding: word(nil), Stores: []storeState{}}
	for _, s := range all {
		h.state.Stores = append(h.state.Stores, storeState{s.Store, word(s.Journal), word(s.Backend)})
	}
	h.checked = time.Now()
	return h.state
}

// word returns the state of a thing for the answer: it is failing if it has a problem.
func word(problem error) string {
	if problem != nil {
		return "failing"
	}
	return "ok"
}

// UnmarshalCaddyfile sets the handler up from Caddyfile tokens. Syntax:
//
//	llm_health [<matcher>]
func (*Handler) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	return directive.Options{}.Directive(d)
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Handler)(nil)
	_ caddyhttp.MiddlewareHandler = (*Handler)(nil)
	_ caddyfile.Unmarshaler       = (*Handler)(nil)
)
