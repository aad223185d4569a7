package llmotlp

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins/observe"
)

// providers are Weir's names of providers, by the lower-case names that conventions have
// instead.
var providers = map[string]string{
	// gen_ai.provider.name and gen_ai.system
	// https://opentelemetry.io/docs/specs/semconv/registry/attributes/gen-ai/
	"aws.bedrock":        "bedrock",
	"azure.ai.inference": "azure",
	"azure.ai.openai":    "azure",
	"az.ai.inference":    "azure",
	"az.ai.openai":       "azure",
	"gcp.gemini":         "gemini",
	"gcp.gen_ai":         "gemini",
	"gcp.vertex_ai":      "vertex",
	"vertex_ai":          "vertex",
	"mistral_ai":         "mistral",
	"moonshot_ai":        "moonshotai",
	"x_ai":               "xai",
	// OpenLLMetry
	"aws":          "bedrock",
	"google":       "gemini",
	"hugging_face": "huggingface",
	"mistralai":    "mistral",
	"together_ai":  "together",
	"togetherai":   "together",
	"vertexai":     "vertex",
	// OpenInference has nothing but the above.
	// TensorZero and Portkey, whose exports "weir import" reports
	"aws_bedrock":             "bedrock",
	"azure-openai":            "azure",
	"fireworks-ai":            "fireworks",
	"gcp_vertex_anthropic":    "vertex",
	"gcp_vertex_gemini":       "vertex",
	"google_ai_studio_gemini": "gemini",
	"mistral-ai":              "mistral",
	"perplexity-ai":           "perplexity",
	"together-ai":             "together",
	"vertex-ai":               "vertex",
}

// provider returns the lower-case name of the provider: by the address that was called, else as
// the instrumentation names it.
func (c *call) provider() string {
	if provider := observe.Provider(c.host()); provider != "" {
		return provider
	}
	name := strings.ToLower(c.text("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"))
	return cmp.Or(providers[name], name, llmapp.NoProvider)
}

func (c *call) host() string {
	if u, err := url.Parse(c.text("gen_ai.openai.api_base", "llm.openai.api_base")); err == nil && u.Host != "" {
		return u.Host
	}
	if u, err := url.Parse(c.text("url.full")); err == nil && u.Host != "" {
		return u.Host
	}
	return c.text("server.address", "net.peer.name")
}

// target returns where the call went, as far as the span says.
func (c *call) target() string {
	if base := c.text("gen_ai.openai.api_base", "llm.openai.api_base", "url.full"); base != "" {
		return redact.URL(base)
	}
	return ""
}
