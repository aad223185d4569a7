// Package llmadmin is the admin.api module of Weir: the state of its stores on
// Caddy's admin endpoint.
//
// Its tests are admin_test.go of standard, and the commands' tests in llmcommand.
package llmadmin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/journal"
)

func init() {
	caddy.RegisterModule(new(API))
}

// API adds these routes to Caddy's admin endpoint:
//
//	GET  /llm/process       the process, its sites and its databases
//	GET  /llm/status        the state of each open store
//	GET  /weir/integrity     what became of all exchanges that were seen
//	POST /llm/flush         waits until everything recorded so far can be queried
//	GET  /llm/credits       the credits of the organisations, in US dollars
//	POST /llm/credits       grants more, {"org": "acme", "amount": "20.00"}
//	POST /llm/keys/admin    creates a key that administers an organisation, {"org": "acme"}
//	POST /llm/backup        makes a backup, {"directory": "/var/backups/weir"}
//	POST /llm/stores/copy   copies a store to another, {"from": "default", "to": "big"}
//	POST /llm/catalog       installs a published catalogue, {"from": "/tmp/catalog.json"}
//	GET  /llm/doctor        what an operator would look at, with the fix of what is wrong
//	GET  /llm/health/live   200 as long as the process answers
//	GET  /llm/health/ready  200 when every journal can be written and every backend takes records, else 503
type API struct{}

// CaddyModule returns the Caddy module information.
func (*API) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "admin.api.llm", New: func() caddy.Module { return new(API) }}
}

// Routes returns the routes of the module.
func (*API) Routes() []caddy.AdminRoute {
	return []caddy.AdminRoute{
		{Pattern: "/llm/process", Handler: methods{http.MethodGet: process}},
		{Pattern: "/llm/status", Handler: methods{http.MethodGet: status}},
		{Pattern: "/weir/integrity", Handler: methods{http.MethodGet: integrity}},
		{Pattern: "/llm/flush", Handler: methods{http.MethodPost: flush}},
		{Pattern: "/llm/credits", Handler: methods{http.MethodGet: listCredits, http.MethodPost: grantCredits}},
		{Pattern: "/llm/keys/admin", Handler: methods{http.MethodPost: createAdminKey}},
		{Pattern: "/llm/backup", Handler: methods{http.MethodPost: makeBackup}},
		{Pattern: "/llm/stores/copy", Handler: methods{http.MethodPost: copyStore}},
		{Pattern: "/llm/catalog", Handler: methods{http.MethodPost: installCatalog}},
		{Pattern: "/llm/doctor", Handler: methods{http.MethodGet: doctor}},
		{Pattern: "/llm/health/live", Handler: methods{http.MethodGet: live}},
		{Pattern: "/llm/health/ready", Handler: methods{http.MethodGet: ready}},
	}
}

// methods are the handlers of a path.
type methods map[string]caddy.AdminHandlerFunc

// ServeHTTP implements caddy.AdminHandler.
func (m methods) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	if handle, ok := m[r.Method]; ok {
		return handle(w, r)
	}
	allowed := slices.Sorted(maps.Keys(m))
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	return caddy.APIError{HTTPStatus: http.StatusMethodNotAllowed, Err: fmt.Errorf("method not allowed; use %s", strings.Join(allowed, " or "))}
}

// maxBody bounds the body of a request, in bytes.
const maxBody = 64 << 10

// errStarting is the error while the first configuration starts.
var errStarting = caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: errors.New("no configuration with `llm` has started yet: try again in a moment")}

// readJSON reads the body of a request into v, and returns the app of the running
// configuration.
func readJSON(w http.ResponseWriter, r *http.Request, v any) (*llmapp.App, error) {
	running, err := caddy.ActiveContext().AppIfConfigured("llm")
	if err != nil {
		return nil, errStarting
	}
	app := running.(*llmapp.App)
	err = intake.Reader{Memory: app.Memory("administration"), Limit: maxBody}.ReadJSON(w, r, v)
	if refused, ok := errors.AsType[*plugins.Error](err); ok {
		return nil, caddy.APIError{HTTPStatus: refused.Status, Err: refused}
	}
	if err != nil {
		return nil, caddy.APIError{HTTPStatus: http.StatusBadRequest, Err: fmt.Errorf("the body: %w", err)}
	}
	return app, nil
}

// StoreStatus is one element of the answer of /llm/status.
type StoreStatus struct {
	Store string `json:"store"`
	journal.Status
	Error        string     `json:"error,omitempty"`
	FailingSince *time.Time `json:"failing_since,omitempty"`
}

func status(w http.ResponseWriter, _ *http.Request) error {
	answer := []StoreStatus{}
	for store, j := range openJournals() {
		element := StoreStatus{Store: store, Status: j.Status()}
		if err := element.Err; err != nil {
			element.Error, element.FailingSince = err.Error(), &element.Status.FailingSince
		}
		answer = append(answer, element)
	}
	return apierror.WriteJSON(w, http.StatusOK, answer)
}

// StoreIntegrity is one element of the answer of /weir/integrity: the reconciliation of
// a store since it began, where seen = recorded + waiting + in_flight + lost.
type StoreIntegrity struct {
	Store string `json:"store"`
	journal.Integrity
	Lost int64 `json:"lost"`
	// Unaccounted is what the equation lacks: 0, unless Weir is wrong.
	Unaccounted int64 `json:"unaccounted"`
}

func integrity(w http.ResponseWriter, _ *http.Request) error {
	answer := []StoreIntegrity{}
	for store, j := range openJournals() {
		i := j.Integrity()
		if i.Losses == nil {
			i.Losses = []storage.Loss{}
		}
		if i.Damage == nil {
			i.Damage = []journal.FileDamage{}
		}
		answer = append(answer, StoreIntegrity{store, i, i.Lost(), i.Unaccounted()})
	}
	return apierror.WriteJSON(w, http.StatusOK, answer)
}

// openJournals yields the journals of the open stores, by the stores' names.
func openJournals() iter.Seq2[string, *journal.Journal] {
	return func(yield func(string, *journal.Journal) bool) {
		for _, store := range stores.InUse() {
			if j := store.Opened(); j != nil && !yield(store.Name(), j) {
				return
			}
		}
	}
}

// flushTimeout bounds how long a flush may wait for a backend that is behind.
const flushTimeout = 30 * time.Second

func flush(w http.ResponseWriter, r *http.Request) error {
	ctx, cancel := context.WithTimeout(r.Context(), flushTimeout)
	defer cancel()
	for store, j := range openJournals() {
		if err := j.Flush(ctx); err != nil {
			return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: fmt.Errorf("store %s: %w", store, err)}
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func live(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(http.StatusOK)
	return nil
}

func ready(w http.ResponseWriter, r *http.Request) error {
	if problem := stores.Ready(stores.CheckHealth(r.Context())); problem != nil {
		return caddy.APIError{HTTPStatus: http.StatusServiceUnavailable, Err: problem}
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

// Interface guards
var _ caddy.AdminRouter = (*API)(nil)
