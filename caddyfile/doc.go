// Package caddyfile gives Weir's modules their Caddyfile directives and the
// global option `llm`. It only builds configuration: nothing here expands
// placeholders, sets defaults or touches a disk.
package caddyfile

import (
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/weirhq/weir/modules/llmcontrol"
	"github.com/weirhq/weir/modules/llmecho"
	"github.com/weirhq/weir/modules/llmgateway"
	"github.com/weirhq/weir/modules/llmhealth"
	"github.com/weirhq/weir/modules/llmlog"
	"github.com/weirhq/weir/modules/llmmcp"
	"github.com/weirhq/weir/modules/llmnotfound"
	"github.com/weirhq/weir/modules/llmotlp"
	"github.com/weirhq/weir/modules/llmquery"
	"github.com/weirhq/weir/modules/llmui"
)

func init() {
	httpcaddyfile.RegisterGlobalOption("llm", parseApp)

	// Behind encode, so that what is recorded was never compressed for the
	// client's sake.
	httpcaddyfile.RegisterHandlerDirective("llm_log", parseHandler[llmlog.Handler])
	httpcaddyfile.RegisterDirectiveOrder("llm_log", httpcaddyfile.After, "encode")

	// The others answer requests, like reverse_proxy does.
	httpcaddyfile.RegisterDirective("llm_proxy", parseProxy)
	httpcaddyfile.RegisterHandlerDirective("llm_control", parseHandler[llmcontrol.Handler])
	httpcaddyfile.RegisterHandlerDirective("llm_query", parseHandler[llmquery.Handler])
	httpcaddyfile.RegisterHandlerDirective("llm_gateway", parseHandler[llmgateway.Handler])
	httpcaddyfile.RegisterHandlerDirective("llm_otlp", parseHandler[llmotlp.Handler])
	httpcaddyfile.RegisterHandlerDirective("llm_mcp_server", parseHandler[llmmcp.Handler])
	httpcaddyfile.RegisterHandlerDirective("llm_ui", parseHandler[llmui.Handler])
	httpcaddyfile.RegisterHandlerDirective("llm_echo", parseHandler[llmecho.Handler])
	httpcaddyfile.RegisterHandlerDirective("llm_health", parseHandler[llmhealth.Handler])

	// Behind all that answers some requests.
	httpcaddyfile.RegisterHandlerDirective("llm_not_found", parseHandler[llmnotfound.Handler])
	httpcaddyfile.RegisterDirectiveOrder("llm_not_found", httpcaddyfile.After, "file_server")
	for _, directive := range []string{"llm_proxy", "llm_control", "llm_query", "llm_gateway", "llm_otlp", "llm_mcp_server", "llm_ui", "llm_echo", "llm_health"} {
		httpcaddyfile.RegisterDirectiveOrder(directive, httpcaddyfile.Before, "reverse_proxy")
	}
}
