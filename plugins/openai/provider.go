// Package openai speaks OpenAI's Responses API
// (https://platform.openai.com/docs/api-reference/responses), which the gateway's
// clients speak too: requests and answers pass unchanged. If clients cannot read a
// provider's streams, its answers go through the Assembler as the answers of any
// other dialect do.
package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/module"
	"github.com/weirhq/weir/plugins/translate"
)

// Provider speaks OpenAI's Responses API. Requests and answers pass unchanged
// but for the name of the model in the request.
//
// With `base_url` it reaches others that speak Responses like OpenAI, such as LM
// Studio at `http://localhost:1234/v1` or DeepSeek at `https://api.deepseek.com`.
// The Responses of OpenRouter, xAI and GitHub Copilot, whose streams break clients,
// are decoded and encoded again. So are those with tools in namespaces, which only OpenAI
// and Azure take, and with a search of tools, which only their models since gpt-5.4 know.
type Provider struct{}

func init() { caddy.RegisterModule(Provider{}) }

// CaddyModule returns the Caddy module information.
func (Provider) CaddyModule() caddy.ModuleInfo { return module.Info[Provider]("openai") }

// paths are those of the dialects that OpenAI speaks.
var paths = map[plugins.Dialect]string{
	plugins.Responses:   "/responses",
	plugins.Compaction:  "/responses/compact",
	plugins.InputTokens: "/responses/input_tokens",
	plugins.Chat:        "/chat/completions",
}

// chatCalls are what OpenAI takes of names and ids in Chat Completions, and calls in Responses
// (https://platform.openai.com/docs/api-reference/chat/create).
var (
	chatCalls = translate.CallRules{ID: 40}
	calls     = translate.CallRules{ID: 64, OneObject: true}
)

// complete are the vendors who have all of the Responses API, and not only its responses.
var complete = []string{"openai", "azure"}

// irregular are the vendors whose streams break clients: OpenRouter gives an item
// another id at its end, the citations of xAI lack required fields, and the id of a
// Copilot response changes.
var irregular = []string{"openrouter", "xai", "github-copilot"}

// PrepareNative implements translate.Native.
func (Provider) PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*http.Request, error) {
	path, ok := paths[d]
	if d == plugins.Chat && isOf(complete, t) && (!chatCalls.TakesChat(body) || NeedsResponses(t, body)) { // which take a translation
		return nil, errors.ErrUnsupported
	}
	if !ok || d == plugins.Responses && (isOf(irregular, t) || flattens(body, t)) ||
		(d == plugins.Compaction || d == plugins.InputTokens) && !isOf(complete, t) {
		return nil, errors.ErrUnsupported
	}
	return t.Post(ctx, path, translate.Bearer, plugins.WithModel(body, t.Model))
}

func isOf(vendors []string, t translate.Target) bool {
	vendor := t.Vendor
	if u, err := url.Parse(t.BaseURL); vendor == "" && err == nil {
		vendor = plugins.VendorOfHost(u.Hostname())
	}
	return slices.Contains(vendors, vendor)
}

// agentsBeta is the beta of the sessions of agents.
// https://developers.openai.com/api/docs/guides/agents-api
const agentsBeta = "agents=v1"

// PrepareEndpoint implements translate.Endpoints. A server that lacks an endpoint of OpenAI
// says so itself.
func (Provider) PrepareEndpoint(ctx context.Context, method, path string, t translate.Target) (*http.Request, error) {
	path, ok := strings.CutPrefix(path, "/v1/")
	if !ok || strings.HasPrefix(path, "messages/") { // which is Anthropic's
		return nil, errors.ErrUnsupported
	}
	req, err := t.Request(ctx, method, "/"+path, translate.Bearer)
	if err == nil && strings.HasPrefix(path, "agents/") {
		req.Header.Set("OpenAI-Beta", agentsBeta)
	}
	return req, err
}

// Prepare implements translate.Provider.
func (Provider) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	body, err := newBody(p, t)
	if err != nil {
		return nil, err
	}
	object, _ := plugins.ParseObject(body)
	return t.Post(ctx, paths[plugins.Responses], translate.Bearer, plugins.WithModel(object, t.Model))
}

// newBody translates p.
func newBody(p *translate.Request, t translate.Target) ([]byte, error) {
	other, flat := p.FromOtherAPI(), false
	if raw, ok := plugins.ParseObject(p.Raw); ok && !other && flattens(raw, t) {
		flat = true
		if err := p.DropTools(func(*translate.Tool) bool { return false }); err != nil {
			return nil, err
		}
	}
	if other || flat {
		if err := p.FitCalls(calls); err != nil {
			return nil, err
		}
	}
	body, err := withInput(p, flat)
	switch {
	case err == nil && other:
		return fromOtherAPI(body, p, t)
	case err == nil && flat:
		return withFlatTools(body, p)
	}
	return body, err
}

// countedFields are the fields of a request whose tokens are counted, beside the model and what the
// provider keeps (https://platform.openai.com/docs/api-reference/responses/input-tokens).
var countedFields = []string{"input", "instructions", "parallel_tool_calls", "reasoning", "text", "tool_choice", "tools", "truncation"}

// PrepareCount implements translate.Counter.
func (Provider) PrepareCount(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	if !isOf(complete, t) {
		return nil, errors.ErrUnsupported
	}
	body, err := newBody(p, t)
	if err != nil {
		return nil, err
	}
	object, _ := plugins.ParseObject(body)
	asked := map[string]any{"model": t.Model}
	for i := range object.Members {
		if m := &object.Members[i]; slices.Contains(countedFields, m.Name) {
			asked[m.Name] = json.RawMessage(m.Value.Raw)
		}
	}
	return t.Post(ctx, paths[plugins.InputTokens], translate.Bearer, asked)
}

// Tokens implements translate.Counter.
func (Provider) Tokens(body []byte) (n int64, ok bool) {
	v := gjson.GetBytes(body, "input_tokens")
	return v.Int(), v.Type == gjson.Number
}

var (
	_ translate.Provider  = (*Provider)(nil)
	_ translate.Native    = (*Provider)(nil)
	_ translate.Adapter   = (*Provider)(nil)
	_ translate.Counter   = (*Provider)(nil)
	_ translate.Endpoints = (*Provider)(nil)
)
