package compat

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// account is a provider of the gateway whose every answer is one recording.
type account struct {
	*Recording
	Stream  bool // what the path asks for, also where the recording is an error
	kind    string
	host    string   // of its base URL, "" for any
	base    string   // the path of its base URL
	options []string // of the kind
	model   string   // as the provider names it
}

// kinds are the providers whose kind is not what the recording calls them.
var kinds = map[string]map[string]string{
	"chat.completions": {"openai": "compatible", "zai": "compatible", "huggingface": "compatible"},
	"responses":        {"deepseek": "openai", "bedrock": "openai", "openrouter": "openai"},
}

// endpointPaths is what follows the base URL in the paths of an endpoint.
var endpointPaths = map[string][]string{
	"chat.completions": {"/openai/deployments/", "/chat/completions"},
	"responses":        {"/responses"},
	"messages":         {"/v1/messages"},
	"generateContent":  {"/v1beta/models/", "/v1beta1/projects/"},
	"cohere.v2.chat":   {"/v2/chat"},
	"converse":         {"/model/"},
}

// newAccount is false for a recording of an endpoint that no kind calls.
func newAccount(r *Recording) (account, bool) {
	path := r.URL.Path
	for _, place := range endpointPaths[r.Endpoint] {
		base, _, ok := strings.Cut(path, place)
		if !ok {
			continue
		}
		a := account{Recording: r, base: base, kind: cmp.Or(kinds[r.Endpoint][r.Provider], r.Provider)}
		a.Stream = r.Stream || strings.HasSuffix(path, "/converse-stream")
		a.model = cmp.Or(between(path, "/models/", ":"), between(path, "/deployments/", "/"), between(path, "/model/", "/"),
			gjson.GetBytes(r.Request, "model").Str)
		if r.Endpoint == "responses" && r.Provider == "openrouter" {
			a.host = "http://openrouter.ai" // by which the kind knows it
		}
		if a.kind == "vertex" {
			a.options = []string{"project " + between(path, "/projects/", "/"), "location " + between(path, "/locations/", "/")}
		}
		return a, true
	}
	return account{}, false
}

// between is the part of s between the first start and the next end.
func between(s, start, end string) string {
	_, s, _ = strings.Cut(s, start)
	s, _, _ = strings.Cut(s, end)
	return s
}

// status is what the gateway answers. Anthropic's own status of an overload is
// none that clients know.
func (a account) status() int {
	if a.Status == 529 {
		return http.StatusServiceUnavailable
	}
	return a.Status
}

// request is a call of the account's model.
func (a account) request(tools []string) map[string]any {
	request := map[string]any{"model": a.Name + "/" + a.model, "input": "hi", "stream": a.Stream}
	var functions []any
	for _, name := range tools {
		functions = append(functions, map[string]any{
			"type": "function", "name": name, "strict": false,
			"parameters": map[string]any{"type": "object", "properties": map[string]any{}, "additionalProperties": true},
		})
	}
	if functions != nil {
		request["tools"] = functions
	}
	return request
}

// requestTo is request in the format of another endpoint.
func (a account) requestTo(endpoint string, tools []string) map[string]any {
	request := a.request(tools)
	if native[endpoint] == nil {
		return request
	}
	delete(request, "input")
	request["messages"] = []any{map[string]any{"role": "user", "content": "hi"}}
	functions, _ := request["tools"].([]any)
	for i, f := range functions {
		f := f.(map[string]any)
		if endpoint == "messages" {
			functions[i] = map[string]any{"name": f["name"], "input_schema": f["parameters"]}
		} else {
			functions[i] = map[string]any{"type": "function", "function": map[string]any{"name": f["name"], "parameters": f["parameters"]}}
		}
	}
	switch {
	case endpoint == "messages":
		request["max_tokens"] = 1000
	case a.Stream:
		request["stream_options"] = map[string]any{"include_usage": true}
	}
	return request
}

// gatewayConfig is the Caddyfile of a gateway with these accounts. What fails is
// not tried again.
func gatewayConfig(provider string, accounts []account) string {
	var b strings.Builder
	for _, a := range accounts {
		host := provider
		if a.host != "" {
			host = a.host
			a.options = append(a.options, "transport http {", "network_proxy url "+provider, "}")
		}
		lines := slices.Concat([]string{"base_url " + host + a.Prefix() + a.base, "api_key none"}, a.options)
		fmt.Fprintf(&b, "provider %s %s {\n%s\n}\n", a.Name, a.kind, strings.Join(lines, "\n"))
	}
	return `{
	admin 127.0.0.1:{$WEIR_ADMIN_PORT}
	persist_config off
	log {
		format llm
	}
	llm {
		store sqlite {$WEIR_DATA}/weir.db
		key weir-quickstart
		key none gateway
` + b.String() + `
	}
}

http://:{$WEIR_PORT} {
	bind 127.0.0.1
	llm_gateway {
		retries 0
	}
	llm_query
}
`
}
