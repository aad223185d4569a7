// Weir with what several nodes need: what `xcaddy build` makes of the three modules,
// built by the Go toolchain alone.
package main

import (
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/weirhq/weir"
	_ "github.com/weirhq/weir/storage/clickhouse"
	_ "github.com/weirhq/weir/storage/redis"
)

func main() { caddycmd.Main() }
