// Package paths says what the handlers of a site serve: to the last handler, which lists
// their paths, and to the tests that walk every route. It also says at which address a client
// has found a handler.
package paths

import (
	"context"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Route is what a handler answers.
type Route struct {
	Method string
	// Path has segments like {id} that stand for any.
	Path string
	// Socket is true of a WebSocket.
	Socket bool
}

// Matches reports whether the route has a path. A segment like {id} stands for any, and {rest...}
// for all that follow.
func (r Route) Matches(path string) bool {
	wanted, given := strings.Split(r.Path, "/"), strings.Split(path, "/")
	for i, segment := range wanted {
		switch {
		case strings.HasSuffix(segment, "...}"):
			return true
		case i >= len(given), segment != given[i] && !strings.HasPrefix(segment, "{"):
			return false
		}
	}
	return len(wanted) == len(given)
}

// Router is every handler that answers clients. Its routes are those that it dispatches by.
type Router interface {
	Routes() []Route
}

// variable is that of a request in which the paths stand.
const variable = "llm.paths"

// Offer notes the paths that a handler serves, when it passes a request for
// another one on. A segment like {id} stands for any.
func Offer(ctx context.Context, served []string) {
	caddyhttp.SetVar(ctx, variable, append(Offered(ctx), served...))
}

// Offered returns the paths of all handlers that passed the request on.
func Offered(ctx context.Context) []string {
	offered, _ := caddyhttp.GetVar(ctx, variable).([]string)
	return offered[:len(offered):len(offered)]
}
