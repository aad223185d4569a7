package llmotlp

import (
	"cmp"
	"net/url"
	"regexp"
	"strings"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins/catalog"
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
	"groqcloud":    "groq",
	// AI SDK, Mastra, Genkit, LangChain, LiteLLM
	"amazon-bedrock":       "bedrock",
	"amazon_bedrock":       "bedrock",
	"azure-openai":         "azure",
	"azure_openai":         "azure",
	"azure_ai":             "azure",
	"bedrock_converse":     "bedrock",
	"fireworks_ai":         "fireworks",
	"gateway":              "vercel",
	"google.generative-ai": "gemini",
	"google.vertex":        "vertex",
	"google_genai":         "gemini",
	"google-genai":         "gemini",
	"googleai":             "gemini",
	"google_vertexai":      "vertex",
	"vercel_ai_gateway":    "vercel",
	// These serve models on the machines of whoever calls them, at no price.
	"ollama":      "ollama",
	"vllm":        "vllm",
	"lmstudio":    "lmstudio",
	"lm_studio":   "lmstudio",
	"hosted_vllm": "vllm",
	"echo":        "echo",
	// TensorZero and Portkey, whose exports "weir import" reports
	"aws_bedrock":             "bedrock",
	"fireworks-ai":            "fireworks",
	"gcp_vertex_anthropic":    "vertex",
	"gcp_vertex_gemini":       "vertex",
	"google_ai_studio_gemini": "gemini",
	"mistral-ai":              "mistral",
	"perplexity-ai":           "perplexity",
	"together-ai":             "together",
	"vertex-ai":               "vertex",
}

// makers are the vendors that serve models of their own.
var makers = []string{"openai", "anthropic", "gemini", "mistral", "cohere", "deepseek", "xai"}

// providerName returns Weir's name of the provider that a convention names, "" if neither this
// table nor the catalogue knows the name. Frameworks write the kind of the API after a dot:
// openai.responses.
func providerName(name string, prices *catalog.Catalog) string {
	for name = strings.ToLower(name); name != ""; name = name[:max(strings.LastIndexByte(name, '.'), 0)] {
		if kind := providers[name]; kind != "" {
			return kind
		}
		if prices.Serves(name) {
			return name
		}
	}
	return ""
}

// vendor returns the lower-case name of the provider, and the model that was asked for by the
// name that the model has there. The provider is that of the address which was called, else the
// first that is named and known. A framework, or a name that is not known, is nobody's price:
// then the provider is the prefix of the model's name (openai/gpt-4o), else the maker of the
// model, else Bedrock if the name is one of Bedrock's. Without all of these, it is as the instrumentation names it.
func (c *call) vendor(prices *catalog.Catalog) (provider, model string) {
	model = c.requested()
	provider = observe.Provider(c.host())
	for _, key := range providerNames {
		provider = cmp.Or(provider, providerName(c.text(key), prices))
	}
	if prefix, rest, ok := strings.Cut(model, "/"); ok && rest != "" {
		if prefix = providerName(prefix, prices); prefix != "" && (provider == "" || provider == prefix) {
			return prefix, rest
		}
	}
	if provider == "" {
		provider = cmp.Or(c.maker(prices, model), c.bedrock(prices, model), strings.ToLower(c.text(providerNames...)), llmapp.NoProvider)
	}
	return provider, model
}

// maker returns the vendor of a model, "" unless exactly one vendor has a model of that name.
func (c *call) maker(prices *catalog.Catalog, model string) (maker string) {
	for _, model := range []string{c.responded(), model} {
		for _, vendor := range makers {
			if m, ok := prices.Lookup(vendor, model); ok && m.Provider == vendor {
				if maker != "" && maker != vendor {
					return ""
				}
				maker = vendor
			}
		}
	}
	return maker
}

// bedrockName is how Bedrock names models: by a region and a vendor, as in us.anthropic.claude-opus-5.
var bedrockName = regexp.MustCompile(`^(?:[a-z][a-z0-9-]*\.)+[a-z]|^arn:aws[a-z-]*:bedrock:`)

// bedrock returns the provider of a model whose name only Bedrock has, "" for others.
func (c *call) bedrock(prices *catalog.Catalog, model string) string {
	const bedrock = "bedrock"
	for _, model := range []string{c.responded(), model} {
		if _, ok := prices.Lookup(bedrock, model); ok && bedrockName.MatchString(model) {
			return bedrock
		}
	}
	return ""
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
