// Package weir adds every module of Weir to a Caddy that imports it:
//
//	CGO_ENABLED=1 xcaddy build --with github.com/weirhq/weir
package weir

import _ "github.com/weirhq/weir/modules/standard"
