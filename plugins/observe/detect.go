package observe

import (
	"net"
	"net/url"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// Detect is the dialect of calls to path, the provider's own path without its
// query. The provider settles what the path leaves open; it may be "".
func Detect(provider, path string) plugins.Dialect {
	path = strings.TrimSuffix(path, "/")
	if _, method, ok := strings.Cut(lastSegment(path), ":"); ok {
		return detectMethod(method, path)
	}
	if strings.Contains(path, "/model/") {
		switch lastSegment(path) {
		case "converse", "converse-stream":
			return plugins.Converse
		case "invoke", "invoke-with-response-stream":
			return plugins.Invoke
		}
	}
	for _, s := range suffixes {
		if !strings.HasSuffix(path, s.suffix) {
			continue
		}
		switch {
		case s.dialect == plugins.Completions && provider == "mistral":
			// fim/completions and agents/completions.
			return plugins.Chat
		case s.dialect == plugins.Messages && strings.Contains(path, "/threads/"):
			// Those of OpenAI's Assistants.
			return plugins.Unknown
		}
		return s.dialect
	}
	return plugins.Unknown
}

// suffixes are tried in order: a longer path stands before its own ending.
var suffixes = []struct {
	suffix  string
	dialect plugins.Dialect
}{
	{"/chat/completions", plugins.Chat},
	{"/completions", plugins.Completions},
	{"/responses", plugins.Responses},
	{"/embeddings", plugins.Embeddings},
	{"/messages", plugins.Messages},
	{"/messages/count_tokens", plugins.CountTokens},
	{"/v2/chat", plugins.CohereChat},
	{"/api/chat", plugins.OllamaChat},
	{"/api/generate", plugins.OllamaGenerate},
}

// detectMethod is Detect for Google's custom methods, {model}:{method}. Vertex
// serves other makers' models in their native dialect by :rawPredict.
func detectMethod(method, path string) plugins.Dialect {
	switch method {
	case "generateContent", "streamGenerateContent":
		return plugins.GenerateContent
	case "rawPredict", "streamRawPredict":
		switch {
		case strings.Contains(path, "/publishers/anthropic/"):
			return plugins.Messages
		case strings.Contains(path, "/publishers/mistralai/"):
			return plugins.Chat
		}
	}
	return plugins.Unknown
}

// PathModel is the model that the path of a call names: Gemini's and Vertex's
// models/{model}:{method}, Bedrock's model/{model}/{operation} with its ids,
// profiles and ARNs decoded, Azure's deployments/{deployment}. It is "" where
// the body names the model.
func PathModel(d plugins.Dialect, path string) string {
	path = strings.TrimSuffix(path, "/")
	switch d {
	case plugins.Converse, plugins.Invoke:
		_, rest, _ := strings.Cut(path, "/model/")
		return unescape(rest[:max(0, strings.LastIndexByte(rest, '/'))])
	case plugins.Unknown:
		return ""
	}
	if model, _, ok := strings.Cut(lastSegment(path), ":"); ok {
		return unescape(model)
	}
	if _, rest, ok := strings.Cut(path, "/deployments/"); ok {
		deployment, _, _ := strings.Cut(rest, "/")
		return unescape(deployment)
	}
	return ""
}

func lastSegment(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// unescape decodes a path segment, which some callers have decoded before.
func unescape(segment string) string {
	if s, err := url.PathUnescape(segment); err == nil {
		return s
	}
	return segment
}

// Provider is the lower-case name of the provider that serves host, which may
// carry a port, or "" for a host that is none's.
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

// isBedrock knows bedrock-runtime.{region}.amazonaws.com with its FIPS, China,
// dual-stack and VPC endpoint forms, and bedrock-mantle.{region}.api.aws.
func isBedrock(host string) bool {
	service := strings.HasPrefix(host, "bedrock-") || strings.Contains(host, ".bedrock-")
	return service && (strings.HasSuffix(host, ".amazonaws.com") ||
		strings.HasSuffix(host, ".amazonaws.com.cn") || strings.HasSuffix(host, ".api.aws"))
}
