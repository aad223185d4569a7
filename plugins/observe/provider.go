package observe

import (
	"net"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// Provider returns the lower-case name of the provider that serves a host, "" if no provider
// is known to. The host may have a port.
func Provider(host string) string {
	host = strings.ToLower(host)
	if h, port, err := net.SplitHostPort(host); err == nil {
		if port == "11434" {
			return "ollama"
		}
		host = h
	}
	host = strings.TrimSuffix(host, ".")
	if isBedrock(host) {
		return "bedrock"
	}
	if strings.HasSuffix(host, ".googleapis.com") && strings.Contains(host, "aiplatform.") {
		return "vertex"
	}
	return plugins.VendorOfHost(host)
}

// Geography returns where a provider runs the models that are called at a host and path, ""
// if these do not say: the region of Vertex AI, and the data residency of OpenAI
// (https://platform.openai.com/docs/guides/your-data), as in eu.api.openai.com.
func Geography(provider, host, path string) string {
	switch provider {
	case "openai":
		geography, _ := strings.CutSuffix(strings.ToLower(host), ".api.openai.com")
		if geography != strings.ToLower(host) {
			return geography
		}
	case "vertex":
		_, rest, _ := strings.Cut(path, "/locations/")
		location, _, _ := strings.Cut(rest, "/")
		return location
	}
	return ""
}

// isBedrock knows bedrock-runtime.{region}.amazonaws.com with its FIPS, China,
// dual-stack and VPC endpoint forms, and bedrock-mantle.{region}.api.aws.
func isBedrock(host string) bool {
	service := strings.HasPrefix(host, "bedrock-") || strings.Contains(host, ".bedrock-")
	return service && (strings.HasSuffix(host, ".amazonaws.com") ||
		strings.HasSuffix(host, ".amazonaws.com.cn") || strings.HasSuffix(host, ".api.aws"))
}
