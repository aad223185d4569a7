package plugins

import (
	"net/url"
	"strings"
)

// vendor is what is the same for all customers of a vendor of models, or of a
// server that runs them locally.
type vendor struct {
	name    string
	baseURL string // as the vendor's own SDK takes it
	keyEnv  string
	domains []string // beside the host of baseURL
}

// vendors is the one table of addresses. Those of Bedrock and Vertex AI depend on
// the region; their plugins make them.
var vendors = []vendor{
	{name: "anthropic", baseURL: "https://api.anthropic.com", keyEnv: "ANTHROPIC_API_KEY"},
	{name: "azure", keyEnv: "AZURE_OPENAI_API_KEY", domains: []string{
		"openai.azure.com", "openai.azure.us", "openai.azure.cn",
		"services.ai.azure.com", "cognitiveservices.azure.com", "models.ai.azure.com",
	}},
	{name: "cerebras", baseURL: "https://api.cerebras.ai/v1", keyEnv: "CEREBRAS_API_KEY"},
	{name: "cohere", baseURL: "https://api.cohere.com", keyEnv: "CO_API_KEY", domains: []string{"api.cohere.ai"}},
	{name: "deepseek", baseURL: "https://api.deepseek.com", keyEnv: "DEEPSEEK_API_KEY"},
	{name: "fireworks", baseURL: "https://api.fireworks.ai/inference/v1", keyEnv: "FIREWORKS_API_KEY"},
	{name: "gemini", baseURL: "https://generativelanguage.googleapis.com", keyEnv: "GEMINI_API_KEY"},
	{name: "github-copilot", domains: []string{"githubcopilot.com"}},
	{name: "groq", baseURL: "https://api.groq.com/openai/v1", keyEnv: "GROQ_API_KEY"},
	{name: "huggingface", baseURL: "https://router.huggingface.co/v1", domains: []string{"api-inference.huggingface.co"}},
	{name: "lmstudio", baseURL: "http://localhost:1234/v1"},
	{name: "mistral", baseURL: "https://api.mistral.ai/v1", keyEnv: "MISTRAL_API_KEY", domains: []string{"mistral.ai"}},
	{name: "moonshotai", domains: []string{"api.moonshot.ai", "api.moonshot.cn"}},
	{name: "ollama", baseURL: "http://localhost:11434/v1", domains: []string{"ollama.com"}},
	{name: "openai", baseURL: "https://api.openai.com/v1", keyEnv: "OPENAI_API_KEY"},
	{name: "openrouter", baseURL: "https://openrouter.ai/api/v1", keyEnv: "OPENROUTER_API_KEY"},
	{name: "perplexity", baseURL: "https://api.perplexity.ai", keyEnv: "PERPLEXITY_API_KEY"},
	{name: "together", baseURL: "https://api.together.xyz/v1", keyEnv: "TOGETHER_API_KEY", domains: []string{"api.together.ai"}},
	{name: "vllm", baseURL: "http://localhost:8000/v1"},
	{name: "xai", baseURL: "https://api.x.ai/v1", keyEnv: "XAI_API_KEY"},
	{name: "zai", domains: []string{"api.z.ai", "open.bigmodel.cn"}},
}

// vendorOfDomain and vendorNamed find vendors by their domains and names.
var (
	vendorOfDomain = make(map[string]string)
	vendorNamed    = make(map[string]vendor)
)

func init() {
	for _, v := range vendors {
		vendorNamed[v.name] = v
		for _, domain := range v.domains {
			vendorOfDomain[domain] = v.name
		}
		if u, err := url.Parse(v.baseURL); err == nil && u.Scheme == "https" { // the others are local
			vendorOfDomain[u.Host] = v.name
		}
	}
}

// DefaultTarget returns the public base URL of a vendor, as the vendor's own SDK
// takes it, and the environment variable from which the vendor's own tools take
// the API key. Each is "" where there is none.
func DefaultTarget(vendor string) (baseURL, keyEnv string) {
	v := vendorNamed[vendor]
	return v.baseURL, v.keyEnv
}

// VendorOfHost returns the name of the vendor to which a host belongs, which is
// in lower case and has no port, or "" if it is none's.
func VendorOfHost(host string) string {
	// The longest suffix is the most specific: regional hosts are subdomains.
	for domain := host; domain != ""; _, domain, _ = strings.Cut(domain, ".") {
		if vendor, ok := vendorOfDomain[domain]; ok {
			return vendor
		}
	}
	return ""
}
