// Weir is Caddy with the modules that log, route and meter traffic to large
// language models. It is what `xcaddy build --with github.com/weirhq/weir` makes, built by
// the Go toolchain alone:
//
//	go build ./xcaddy/weir
package main

import (
	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/weirhq/weir"
)

func main() {
	caddy.CustomBinaryName = "weir"
	caddy.CustomLongDescription = `
Weir forwards the traffic between applications and large language models, and
records it: request, response, tokens, cost and latency.

It is Caddy with modules of its own; 'weir run' serves what a Caddyfile says, or a
quickstart where there is none, and all that Caddy does works as it does there.`
	caddycmd.Main()
}
