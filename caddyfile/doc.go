// Package caddyfile gives Weir's modules their Caddyfile directives and the
// global option `llm`. It only builds configuration: nothing here expands
// placeholders, sets defaults or touches a disk.
package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("llm", parseApp)

	// Behind encode, so that what is recorded was never compressed for the
	// client's sake.
	httpcaddyfile.RegisterHandlerDirective("llm_log", parseLog)
	httpcaddyfile.RegisterDirectiveOrder("llm_log", httpcaddyfile.After, "encode")

	// The others answer requests, like reverse_proxy does.
	httpcaddyfile.RegisterDirective("llm_proxy", parseProxy)
	httpcaddyfile.RegisterHandlerDirective("llm_query", parseQuery)
	httpcaddyfile.RegisterHandlerDirective("llm_gateway", parseGateway)
	httpcaddyfile.RegisterHandlerDirective("llm_otlp", parseOTLP)
	httpcaddyfile.RegisterHandlerDirective("llm_echo", parseEcho)

	// Behind all that answers some requests.
	httpcaddyfile.RegisterHandlerDirective("llm_not_found", parseNotFound)
	httpcaddyfile.RegisterDirectiveOrder("llm_not_found", httpcaddyfile.After, "file_server")
	for _, directive := range []string{"llm_proxy", "llm_query", "llm_gateway", "llm_otlp", "llm_echo"} {
		httpcaddyfile.RegisterDirectiveOrder(directive, httpcaddyfile.Before, "reverse_proxy")
	}
}
