package llmadmin

import (
	"testing"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// The handlers of a server are also those of its named routes, once for each place where they are invoked. A
// route that invokes itself ends.
func TestHandlersOfNamedRoutes(t *testing.T) {
	answer := new(caddyhttp.StaticResponse)
	route := func(handlers ...caddyhttp.MiddlewareHandler) caddyhttp.Route {
		return caddyhttp.Route{Handlers: handlers}
	}
	named := route(answer, &caddyhttp.Invoke{Name: "a"})
	server := &caddyhttp.Server{
		Routes: caddyhttp.RouteList{
			route(&caddyhttp.Subroute{Routes: caddyhttp.RouteList{route(&caddyhttp.Invoke{Name: "a"})}}, &caddyhttp.Invoke{Name: "a"}, answer),
			route(&caddyhttp.Invoke{Name: "missing"}),
		},
		NamedRoutes: map[string]*caddyhttp.Route{"a": &named},
	}
	n := 0
	for handler := range handlers(server) {
		if n++; handler != answer {
			t.Errorf("%T", handler)
		}
	}
	if n != 3 {
		t.Errorf("%d handlers", n)
	}
	for range handlers(server) {
		break // and nothing is yielded any more, or Go panics
	}
}
