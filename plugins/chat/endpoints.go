package chat

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/translate"
)

// endpoints are what the vendors have beside Chat Completions of OpenAI's endpoints, and
// of Cohere's rerank, by their own documentation. A server that runs any models, and
// "openai", may have all.
var endpoints = map[string][]string{
	"azure": {
		"embeddings", "completions", "images/generations", "images/edits",
		"audio/transcriptions", "audio/translations", "audio/speech", "files", "batches", "realtime",
	},
	"mistral":    {"embeddings", "audio/transcriptions", "audio/speech", "moderations", "files"},
	"groq":       {"audio/transcriptions", "audio/translations", "audio/speech", "files", "batches"},
	"xai":        {"images/generations", "images/edits", "files"},
	"together":   {"embeddings", "completions", "images/generations", "audio/transcriptions", "audio/translations", "audio/speech", "rerank"},
	"fireworks":  {"embeddings", "completions", "rerank"},
	"openrouter": {"embeddings", "completions", "images/generations", "audio/transcriptions", "audio/speech", "rerank"},
	"cerebras":   {"completions"},
	"ollama":     {"embeddings", "completions"},
	"vllm":       {"embeddings", "completions", "audio/transcriptions", "audio/translations", "rerank"},
	"lmstudio":   {"embeddings", "completions"},
	"deepseek":   {},
}

// PrepareEndpoint implements translate.Endpoints.
func (p *Provider) PrepareEndpoint(ctx context.Context, method, path string, t translate.Target) (*http.Request, error) {
	if some, ok := endpoints[p.vendor.name]; ok && !slices.ContainsFunc(some, func(name string) bool {
		below, ok := strings.CutPrefix(path, "/v1/"+name)
		return ok && (below == "" || below[0] == '/')
	}) {
		return nil, errors.ErrUnsupported
	}
	return openai.Provider{}.PrepareEndpoint(ctx, method, path, t)
}
