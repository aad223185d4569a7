// Weir with what several nodes need: what `xcaddy build` makes of the three modules,
// built by the Go toolchain alone.
package main

import (
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/weirhq/weir/modules/llmcommand"
	_ "github.com/weirhq/weir/modules/standard"
	_ "github.com/weirhq/weir/storage/clickhouse"
	_ "github.com/weirhq/weir/storage/redis"
)

func main() { llmcommand.Main() }
