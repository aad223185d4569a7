// Package standard imports every module of Weir for its registration:
//
//	CGO_ENABLED=1 xcaddy build --with github.com/weirhq/weir/modules/standard
package standard
