// Weir with Acme: what `xcaddy build` makes of the two, built by the Go toolchain
// alone.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	_ "github.com/acme/weir-acme"
	_ "github.com/caddyserver/caddy/v2/modules/standard"
	_ "github.com/weirhq/weir/modules/standard"
)

func main() { caddycmd.Main() }
