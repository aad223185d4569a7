// Package anthropic translates between the neutral request and Anthropic's
// Messages API (https://platform.claude.com/docs/en/api/messages).
package anthropic

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/module"
	"github.com/weirhq/weir/plugins/translate"
)

// Provider speaks Anthropic's Messages API.
//
// The effort of `reasoning` becomes adaptive thinking, or with models that count
// it in tokens a share of `max_output_tokens`; a `json_schema` becomes an output
// format, or with models that have none the arguments of a call. `web_search` and
// `code_interpreter` become the tools that Anthropic hosts. `prompt_cache_key`
// turns automatic caching on. What has no equivalent is refused, or left out with
// a warning.
type Provider struct{}

func init() { caddy.RegisterModule(Provider{}) }

// CaddyModule returns the Caddy module information.
func (Provider) CaddyModule() caddy.ModuleInfo { return module.Info[Provider]("anthropic") }

// apiVersion is the only version of the API there is since 2023.
const apiVersion = "2023-06-01"

// Prepare implements translate.Provider.
func (Provider) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t)
	if err != nil {
		return nil, err
	}
	req, err := post(ctx, t, paths[plugins.Messages], r)
	if err != nil {
		return nil, err
	}
	r.setBetas(req)
	return req, nil
}

// PrepareNative implements translate.Native.
func (Provider) PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*http.Request, error) {
	path, ok := paths[d]
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return post(ctx, t, path, plugins.WithModel(body, t.Model))
}

var paths = map[plugins.Dialect]string{
	plugins.Messages:    "/v1/messages",
	plugins.CountTokens: "/v1/messages/count_tokens",
}

// agentsBeta is the beta of the sessions of agents.
// https://platform.claude.com/docs/en/managed-agents/session-operations
const agentsBeta = "managed-agents-2026-04-01"

// PrepareEndpoint implements translate.Endpoints: of these, it has batches of Messages, and sessions of
// agents.
func (p Provider) PrepareEndpoint(ctx context.Context, method, path string, t translate.Target) (*http.Request, error) {
	isSession := strings.HasPrefix(path, "/v1/sessions/")
	if !isSession && !strings.HasPrefix(path+"/", "/v1/messages/batches/") {
		return nil, errors.ErrUnsupported
	}
	req, err := t.Request(ctx, method, path, p.KeyHeader())
	if err != nil {
		return nil, err
	}
	req.Header.Set("Anthropic-Version", apiVersion)
	if isSession {
		req.Header.Set("Anthropic-Beta", agentsBeta)
	}
	return req, nil
}

// KeyHeader implements translate.KeyHeader.
func (Provider) KeyHeader() string { return "X-Api-Key" }

func post(ctx context.Context, t translate.Target, path string, body any) (*http.Request, error) {
	req, err := t.Post(ctx, path, Provider{}.KeyHeader(), body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Anthropic-Version", apiVersion)
	return req, nil
}

var (
	_ translate.Provider  = (*Provider)(nil)
	_ translate.Native    = (*Provider)(nil)
	_ translate.Endpoints = (*Provider)(nil)
	_ translate.KeyHeader = (*Provider)(nil)
)
