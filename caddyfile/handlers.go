package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/weirhq/weir/modules/llmecho"
	"github.com/weirhq/weir/modules/llmgateway"
	"github.com/weirhq/weir/modules/llmlog"
	"github.com/weirhq/weir/modules/llmnotfound"
	"github.com/weirhq/weir/modules/llmotlp"
	"github.com/weirhq/weir/modules/llmquery"
)

func parseLog(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(llmlog.Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

func parseQuery(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(llmquery.Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

func parseGateway(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(llmgateway.Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

func parseOTLP(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(llmotlp.Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

func parseEcho(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(llmecho.Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}

func parseNotFound(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	handler := new(llmnotfound.Handler)
	return handler, handler.UnmarshalCaddyfile(h.Dispenser)
}
