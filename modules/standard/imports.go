// Package standard imports every module of Weir for its registration. The root of the
// repository imports it:
//
//	CGO_ENABLED=1 xcaddy build --with github.com/weirhq/weir
package standard

import (
	_ "github.com/weirhq/weir/caddyfile"
	_ "github.com/weirhq/weir/modules/llmadmin"
	_ "github.com/weirhq/weir/modules/llmapp"
	_ "github.com/weirhq/weir/modules/llmcommand"
	_ "github.com/weirhq/weir/modules/llmcontrol"
	_ "github.com/weirhq/weir/modules/llmecho"
	_ "github.com/weirhq/weir/modules/llmencoder"
	_ "github.com/weirhq/weir/modules/llmforward"
	_ "github.com/weirhq/weir/modules/llmgateway"
	_ "github.com/weirhq/weir/modules/llmhealth"
	_ "github.com/weirhq/weir/modules/llmlog"
	_ "github.com/weirhq/weir/modules/llmmcp"
	_ "github.com/weirhq/weir/modules/llmnotfound"
	_ "github.com/weirhq/weir/modules/llmotlp"
	_ "github.com/weirhq/weir/modules/llmquery"
	_ "github.com/weirhq/weir/modules/llmui"
	_ "github.com/weirhq/weir/plugins/anthropic"
	_ "github.com/weirhq/weir/plugins/bedrock"
	_ "github.com/weirhq/weir/plugins/chat"
	_ "github.com/weirhq/weir/plugins/cohere"
	_ "github.com/weirhq/weir/plugins/echo"
	_ "github.com/weirhq/weir/plugins/gemini"
	_ "github.com/weirhq/weir/plugins/openai"
	_ "github.com/weirhq/weir/plugins/perplexity"
	_ "github.com/weirhq/weir/plugins/retrieval"
	_ "github.com/weirhq/weir/plugins/vertex"
	_ "github.com/weirhq/weir/storage/sqlite"
)
