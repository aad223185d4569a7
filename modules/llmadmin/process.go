package llmadmin

import (
	"fmt"
	"iter"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/llmapp"
)

// Process is the answer of /llm/process: which process serves this admin endpoint.
type Process struct {
	ID      int    `json:"process"`
	Version string `json:"version"`
	Commit  string `json:"commit"`
	// Sites are the addresses at which the process listens, sorted. There are none while it starts.
	Sites []string `json:"sites"`
	// Stores are the places where its open stores keep their records.
	Stores []string `json:"stores"`
	// Dashboard says that a site has llm_ui, and Control that one has llm_control.
	Dashboard bool `json:"dashboard"`
	Control   bool `json:"control"`
}

// String is a line for people.
func (p *Process) String() string {
	return fmt.Sprintf("Weir %s, process %d, serves %s, keeps records in %s", p.Version, p.ID, list(p.Sites), list(p.Stores))
}

func list(names []string) string {
	if len(names) == 0 {
		return "nothing yet"
	}
	return strings.Join(names, ", ")
}

func process(w http.ResponseWriter, _ *http.Request) error {
	return apierror.WriteJSON(w, http.StatusOK, currentProcess())
}

// currentProcess describes this process, with the configuration that runs.
func currentProcess() *Process {
	p := &Process{ID: os.Getpid(), Version: llmapp.Version(), Commit: llmapp.Commit(), Sites: []string{}, Stores: []string{}}
	if app, err := caddy.ActiveContext().AppIfConfigured("http"); err == nil {
		for _, server := range app.(*caddyhttp.App).Servers {
			p.Sites = append(p.Sites, server.Listen...)
			for handler := range handlers(server.Routes) {
				switch moduleID(handler) {
				case "http.handlers.llm_ui":
					p.Dashboard = true
				case "http.handlers.llm_control":
					p.Control = true
				}
			}
		}
		slices.Sort(p.Sites)
	}
	for _, store := range stores.InUse() {
		p.Stores = append(p.Stores, store.Place())
	}
	return p
}

// handlers yields the handlers of routes, and those within subroutes, in the order of their
// calls.
func handlers(routes caddyhttp.RouteList) iter.Seq[caddyhttp.MiddlewareHandler] {
	return func(yield func(caddyhttp.MiddlewareHandler) bool) { each(routes, yield) }
}

// each calls yield with the same handlers. It returns false once yield has.
func each(routes caddyhttp.RouteList, yield func(caddyhttp.MiddlewareHandler) bool) bool {
	for _, route := range routes {
		for _, handler := range route.Handlers {
			if subroute, ok := handler.(*caddyhttp.Subroute); ok {
				if !each(subroute.Routes, yield) {
					return false
				}
			} else if !yield(handler) {
				return false
			}
		}
	}
	return true
}

// moduleID is the ID of a handler that is a module of Caddy, else "".
func moduleID(handler caddyhttp.MiddlewareHandler) caddy.ModuleID {
	if m, ok := handler.(caddy.Module); ok {
		return m.CaddyModule().ID
	}
	return ""
}
