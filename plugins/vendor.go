package plugins

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Vendor is what is the same for all customers of a vendor of models, or of a
// server that runs them locally.
type Vendor struct {
	// Name is the vendor's as a provider, lower-case.
	Name string
	// BaseURL is the public address of the API as the vendor's own SDK takes it,
	// without a slash at its end, "" where each customer has one of their own.
	BaseURL string
	// KeyEnv is the environment variable from which the vendor's own tools take
	// the API key, "" if there is none.
	KeyEnv string
	// Domains are the vendor's beside the host of BaseURL. Their subdomains are the
	// vendor's too.
	Domains []string
}

// vendors is the one table of addresses. Those of Bedrock and Vertex AI depend on
// the region; their plugins make them.
var vendors = []Vendor{
	{Name: "anthropic", BaseURL: "https://api.anthropic.com", KeyEnv: "ANTHROPIC_API_KEY"},
	{Name: "azure", KeyEnv: "AZURE_OPENAI_API_KEY", Domains: []string{
		"openai.azure.com", "openai.azure.us", "openai.azure.cn",
		"services.ai.azure.com", "cognitiveservices.azure.com", "models.ai.azure.com",
	}},
	{Name: "avian", BaseURL: "https://api.avian.io/v1"},
	{Name: "baseten", BaseURL: "https://inference.baseten.co/v1"},
	{Name: "cerebras", BaseURL: "https://api.cerebras.ai/v1", KeyEnv: "CEREBRAS_API_KEY"},
	{Name: "cohere", BaseURL: "https://api.cohere.com", KeyEnv: "CO_API_KEY", Domains: []string{"api.cohere.ai"}},
	{Name: "dashscope", Domains: []string{
		"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com", "maas.aliyuncs.com",
	}},
	{Name: "deepinfra", BaseURL: "https://api.deepinfra.com/v1/openai"},
	{Name: "deepseek", BaseURL: "https://api.deepseek.com", KeyEnv: "DEEPSEEK_API_KEY"},
	{Name: "fireworks", BaseURL: "https://api.fireworks.ai/inference/v1", KeyEnv: "FIREWORKS_API_KEY"},
	{Name: "gemini", BaseURL: "https://generativelanguage.googleapis.com", KeyEnv: "GEMINI_API_KEY"},
	{Name: "github-copilot", Domains: []string{"githubcopilot.com"}},
	{Name: "groq", BaseURL: "https://api.groq.com/openai/v1", KeyEnv: "GROQ_API_KEY"},
	{Name: "huggingface", BaseURL: "https://router.huggingface.co/v1", Domains: []string{"api-inference.huggingface.co"}},
	{Name: "hyper", BaseURL: "https://hyper.charm.land/v1"},
	{Name: "jina", BaseURL: "https://api.jina.ai/v1", KeyEnv: "JINA_API_KEY"},
	{Name: "lmstudio", BaseURL: "http://localhost:1234/v1"},
	{Name: "minimax", BaseURL: "https://api.minimax.io/v1", Domains: []string{"api.minimaxi.com"}},
	{Name: "mistral", BaseURL: "https://api.mistral.ai/v1", KeyEnv: "MISTRAL_API_KEY", Domains: []string{"mistral.ai"}},
	{Name: "moonshotai", Domains: []string{"api.moonshot.ai", "api.moonshot.cn"}},
	{Name: "nebius", BaseURL: "https://api.tokenfactory.nebius.com/v1"},
	{Name: "novita", BaseURL: "https://api.novita.ai/openai"},
	{Name: "ollama", BaseURL: "http://localhost:11434/v1", Domains: []string{"ollama.com"}},
	{Name: "openai", BaseURL: "https://api.openai.com/v1", KeyEnv: "OPENAI_API_KEY"},
	{Name: "openrouter", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: "OPENROUTER_API_KEY"},
	{Name: "ovhcloud", BaseURL: "https://oai.endpoints.kepler.ai.cloud.ovh.net/v1"},
	{Name: "perplexity", BaseURL: "https://api.perplexity.ai", KeyEnv: "PERPLEXITY_API_KEY"},
	{Name: "scaleway", BaseURL: "https://api.scaleway.ai/v1"},
	{Name: "siliconflow", BaseURL: "https://api.siliconflow.com/v1", Domains: []string{"api.siliconflow.cn"}},
	{Name: "together", BaseURL: "https://api.together.xyz/v1", KeyEnv: "TOGETHER_API_KEY", Domains: []string{"api.together.ai"}},
	{Name: "venice", BaseURL: "https://api.venice.ai/api/v1"},
	{Name: "vercel", BaseURL: "https://ai-gateway.vercel.sh/v1", KeyEnv: "AI_GATEWAY_API_KEY"},
	{Name: "vllm", BaseURL: "http://localhost:8000/v1"},
	{Name: "voyage", BaseURL: "https://api.voyageai.com/v1", KeyEnv: "VOYAGE_API_KEY"},
	{Name: "xai", BaseURL: "https://api.x.ai/v1", KeyEnv: "XAI_API_KEY"},
	{Name: "zai", Domains: []string{"api.z.ai"}},
	{Name: "zhipuai", Domains: []string{"open.bigmodel.cn"}},
}

// vendorOfDomain and vendorNamed find vendors by their domains and names.
var (
	vendorOfDomain = make(map[string]string)
	vendorNamed    = make(map[string]Vendor)
)

func init() {
	for _, v := range vendors {
		RegisterVendor(v)
	}
}

// RegisterVendor makes a vendor known by name and by host. It is meant for init
// functions, and is not safe for concurrent use. The later of two with the same
// name or domain counts.
func RegisterVendor(v Vendor) {
	vendorNamed[v.Name] = v
	for _, domain := range v.Domains {
		vendorOfDomain[domain] = v.Name
	}
	if u, err := url.Parse(v.BaseURL); err == nil && u.Scheme == "https" { // the others are local
		vendorOfDomain[u.Host] = v.Name
	}
}

// Vendors returns the names of all vendors, in no order.
func Vendors() []string { return slices.Collect(maps.Keys(vendorNamed)) }

// IsVendor reports whether a vendor has the name.
func IsVendor(name string) bool {
	_, ok := vendorNamed[name]
	return ok
}

// DefaultTarget returns the public base URL of a vendor, as the vendor's own SDK
// takes it, and the environment variable from which the vendor's own tools take
// the API key. Each is "" if there is none.
func DefaultTarget(vendor string) (baseURL, keyEnv string) {
	v := vendorNamed[vendor]
	return v.BaseURL, v.KeyEnv
}

// VendorOfHost returns the name of the vendor of a host, "" if there is none. The host is in
// lower case and has no port.
func VendorOfHost(host string) string {
	// The longest suffix is the most specific: regional hosts are subdomains.
	for domain := host; domain != ""; _, domain, _ = strings.Cut(domain, ".") {
		if vendor, ok := vendorOfDomain[domain]; ok {
			return vendor
		}
	}
	return ""
}
