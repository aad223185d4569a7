// Weir is Caddy with the modules that log, route and meter traffic to large
// language models. It is what `xcaddy build --with
// github.com/weirhq/weir/modules/standard` makes, built by the Go toolchain
// alone:
//
//	go build ./xcaddy/weir
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/weirhq/weir/modules/standard"
)

func main() {
	caddycmd.Main()
}
