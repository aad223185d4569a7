// Package paths collects the paths that the handlers of a site serve, for the last
// handler, which lists them.
package paths

import (
	"context"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

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
