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
			for handler := range handlers(server) {
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

// handlers yields the handlers of a server in the order of their calls, also those within subroutes and named
// routes.
func handlers(server *caddyhttp.Server) iter.Seq[caddyhttp.MiddlewareHandler] {
	return func(yield func(caddyhttp.MiddlewareHandler) bool) { each(server, server.Routes, nil, yield) }
}

// each calls yield with the handlers of routes of a server. It returns false once yield has. invoked are the
// named routes that these are in, of which none is entered again.
func each(server *caddyhttp.Server, routes caddyhttp.RouteList, invoked []string, yield func(caddyhttp.MiddlewareHandler) bool) bool {
	for _, route := range routes {
		for _, handler := range route.Handlers {
			more := true
			switch h := handler.(type) {
			case *caddyhttp.Subroute:
				more = each(server, h.Routes, invoked, yield)
			case *caddyhttp.Invoke:
				if named := server.NamedRoutes[h.Name]; named != nil && !slices.Contains(invoked, h.Name) {
					more = each(server, caddyhttp.RouteList{*named}, append(slices.Clip(invoked), h.Name), yield)
				}
			default:
				more = yield(handler)
			}
			if !more {
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
