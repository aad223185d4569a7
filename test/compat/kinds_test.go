package compat

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// kind is a kind of provider, and a model of it that calls tools and sees images where
// the kind has such models.
type kind struct {
	name, model string
	base        string   // the path of its base URL
	options     []string // of the kind
}

var providerKinds = []kind{
	{name: "echo", model: "echo-1"},
	{name: "openai", model: "gpt-4.1", base: "/v1"},
	{name: "azure", model: "gpt-4.1", base: "/openai/v1"},
	{name: "anthropic", model: "claude-sonnet-4-5"},
	{name: "gemini", model: "gemini-2.5-flash"},
	{name: "vertex", model: "gemini-3-flash-preview", options: []string{"project p", "location l"}},
	{name: "bedrock", model: "us.anthropic.claude-sonnet-4-20250514-v1:0"},
	{name: "cohere", model: "command-a-plus-05-2026"},
	{name: "cerebras", model: "any", base: "/v1"},
	{name: "compatible", model: "any", base: "/v1"},
	{name: "deepseek", model: "any", base: "/v1"},
	{name: "fireworks", model: "any", base: "/v1"},
	{name: "groq", model: "any", base: "/v1"},
	{name: "lmstudio", model: "any", base: "/v1"},
	{name: "mistral", model: "any", base: unaskedUsage + "/v1"},
	{name: "ollama", model: "any", base: "/v1"},
	{name: "openrouter", model: "any", base: "/v1"},
	{name: "perplexity", model: "any", base: agentBase},
	{name: "together", model: "any", base: "/v1"},
	{name: "vercel", model: "any", base: "/v1"},
	{name: "vllm", model: "any", base: "/v1"},
	{name: "xai", model: "any", base: "/v1"},
}

// id is the model as clients name it.
func (k kind) id() string { return k.name + "/" + k.model }

func TestEveryKindIsListed(t *testing.T) {
	var registered, listed []string
	for _, m := range caddy.GetModules("llm.providers") {
		if name := m.ID.Name(); name != "jina" && name != "voyage" { // which serve no text
			registered = append(registered, name)
		}
	}
	for _, k := range providerKinds {
		listed = append(listed, k.name)
	}
	slices.Sort(listed)
	if !slices.Equal(registered, listed) {
		t.Errorf("the kinds are %q, the list has %q", registered, listed)
	}
}

// startKinds runs a gateway with a provider of every kind, each a strict echo in its
// format.
func startKinds(t *testing.T) *weir {
	t.Helper()
	p := newPublished(t)
	server := httptest.NewServer(strictKinds(t, p))
	t.Cleanup(server.Close)
	var providers strings.Builder
	for _, k := range providerKinds {
		options := k.options
		if k.name != "echo" {
			options = slices.Concat([]string{"api_key none", "base_url " + server.URL + "/" + k.name + k.base}, options)
		}
		fmt.Fprintf(&providers, "provider %s {\n%s\n}\n", k.name, strings.Join(options, "\n"))
	}
	w := startWeir(t, strings.NewReader(gatewayOf(providers.String())))
	p.watchAnswers(t, w)
	return w
}

// gatewayOf configures a gateway of providers, with more of its options.
func gatewayOf(providers string, options ...string) string {
	return `{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	grace_period 3s
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		key weir-quickstart
		` + providers + `
	}
}
http://:{$WEIR_PORT} {
	bind 127.0.0.1
	llm_gateway {
		retries 0
		` + strings.Join(options, "\n") + `
	}
	llm_query
}`
}
