package llmapp

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"
)

// CheckRecorders refuses sites on which two `llm_log` would record, and charge, each call, as Start does. It is
// for a configuration that is only validated.
func (a *App) CheckRecorders() error { return a.env.checkRecorders() }

// checkRecorders refuses sites on which two `llm_log` would record, and charge, each call. It warns of sites on
// which all calls that reach the second one, but not all calls, have passed the first. `llm_log` refuses such calls.
func (e *environment) checkRecorders() error {
	servers, err := httpServers(e.ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		found := recordedTwice{named: servers[name].NamedRoutes}
		found.walk(servers[name].Routes, stage{})
		for _, first := range found.sometimes {
			e.logger.Warn("two `llm_log` would record and charge some calls twice, which are refused with a 500: remove one of the two for these calls; `llm_proxy` has one of its own",
				zap.String("first", recorderDirective(first)), zap.String("server", name))
		}
		if len(found.always) > 0 {
			first := recorderDirective(found.always[0])
			err := fmt.Errorf("%s: two `llm_log` would record and charge each call twice: remove one of the two; `llm_proxy` has one of its own", first)
			return e.lines.WrapDirective(err, strings.Fields(first)...)
		}
	}
	return nil
}

// recorderDirective returns how an `llm_log` begins in a Caddyfile.
func recorderDirective(recorder caddyhttp.MiddlewareHandler) string {
	return strings.TrimSpace("llm_log " + gjson.GetBytes(caddyconfig.JSON(recorder, nil), "provider").Str)
}

// recordedTwice has the handlers that record calls which another handler records, too: each call that passes
// them, or some.
type recordedTwice struct {
	always, sometimes []caddyhttp.MiddlewareHandler
	named             map[string]*caddyhttp.Route // that handlers invoke
	invoked           []string                    // the names of those that are walked
}

// stage is what is known of the requests at a place among the routes.
type stage struct {
	recorder    caddyhttp.MiddlewareHandler // all of them have passed it; nil for none
	conditional bool                        // others that have passed the recorder do not come here
	ended       bool                        // none come here
}

// walk looks for recorders among routes whose requests come from a stage, and returns the stage after them.
func (t *recordedTwice) walk(routes caddyhttp.RouteList, before stage) (after stage) {
	for _, route := range routes {
		chosen := len(route.MatcherSets) > 0 || route.Group != "" // some requests do not take the route
		at := before
		at.conditional = at.conditional || chosen
		for _, handler := range route.Handlers {
			if at = t.pass(handler, at); at.ended {
				break
			}
		}
		at.ended = at.ended || route.Terminal
		switch {
		case !chosen:
			before = at
		case at.ended:
			before.conditional = true
		}
		if before.ended {
			break
		}
	}
	return before
}

// pass returns the stage after a handler.
func (t *recordedTwice) pass(handler caddyhttp.MiddlewareHandler, at stage) stage {
	switch h := handler.(type) {
	case *caddyhttp.Subroute:
		return t.walk(h.Routes, at)
	case *caddyhttp.Invoke:
		return t.invoke(h.Name, at)
	}
	module, ok := handler.(caddy.Module)
	if !ok {
		return at
	}
	switch name := module.CaddyModule().ID.Name(); {
	case slices.Contains(answering, name):
		at.ended = true
	case name != "llm_log":
	case at.recorder == nil:
		at = stage{recorder: handler}
	case !at.conditional:
		t.always = append(t.always, at.recorder)
	case !slices.Contains(t.sometimes, at.recorder):
		t.sometimes = append(t.sometimes, at.recorder)
	}
	return at
}

// invoke returns the stage after a named route. A route that invokes itself answers nothing.
func (t *recordedTwice) invoke(name string, at stage) stage {
	route := t.named[name]
	if route == nil || slices.Contains(t.invoked, name) {
		at.ended = true
		return at
	}
	t.invoked = append(t.invoked, name)
	at = t.walk(caddyhttp.RouteList{*route}, at)
	t.invoked = t.invoked[:len(t.invoked)-1]
	return at
}

// answering are handlers that pass on no request, or only those for which they have no answer.
var answering = []string{"error", "file_server", "llm_forward", "reverse_proxy", "static_response"}
