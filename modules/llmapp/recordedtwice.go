package llmapp

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"
)

// checkRecorders refuses sites on which two `llm_log` would record, and charge, the same call. Where it depends
// on the request, `llm_log` refuses the call.
func (a *App) checkRecorders() error {
	loaded, err := a.env.ctx.AppIfConfigured("http")
	if errors.Is(err, caddy.ErrNotConfigured) {
		return nil
	}
	if err != nil {
		return err
	}
	servers := loaded.(*caddyhttp.App).Servers
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if _, first := recordedTwice(servers[name].Routes, nil); first != nil {
			provider := gjson.GetBytes(caddyconfig.JSON(first, nil), "provider").Str
			err := fmt.Errorf("%s: two `llm_log` would record and charge each call twice: remove the first, because `llm_proxy` has one of its own",
				strings.TrimSpace("llm_log "+provider))
			return a.env.lines.WrapDirective(err, strings.Fields("llm_log "+provider)...)
		}
	}
	return nil
}

// recordedTwice returns the first of two handlers that record whatever passes routes, nil if there are none.
// before is one that all requests have passed already, and after one that all have passed behind the routes.
func recordedTwice(routes caddyhttp.RouteList, before caddyhttp.MiddlewareHandler) (after, first caddyhttp.MiddlewareHandler) {
	for _, route := range routes {
		passed := before
		for _, handler := range route.Handlers {
			module, _ := handler.(caddy.Module)
			switch subroute, ok := handler.(*caddyhttp.Subroute); {
			case ok:
				if passed, first = recordedTwice(subroute.Routes, passed); first != nil {
					return nil, first
				}
			case module == nil:
			case slices.Contains(answering, module.CaddyModule().ID.Name()):
				passed = nil
			case module.CaddyModule().ID != "http.handlers.llm_log":
			case passed != nil:
				return nil, passed
			default:
				passed = handler
			}
		}
		if len(route.MatcherSets) == 0 && route.Group == "" { // all requests take it
			before = passed
		}
	}
	return before, nil
}

// answering are handlers that pass no request on.
var answering = []string{"error", "llm_forward", "reverse_proxy", "static_response"}
