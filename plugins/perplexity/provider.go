// Package perplexity translates between the neutral request and Perplexity's Agent API
// (https://docs.perplexity.ai/docs/agent-api), which took the place of its Chat
// Completions in September 2026. It looks like OpenAI's Responses, but refuses every
// field that it does not know, and has items of its own.
package perplexity

import (
	"context"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/module"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/translate"
)

// Provider speaks Perplexity's Agent API.
//
// Models are those of the Agent API, such as `perplexity/sonar` or `openai/gpt-5.5`, and
// its presets: `fast`, `low`, `medium`, `high` and `xhigh`. The models of the API before
// are what Perplexity has in their place: `sonar` is `perplexity/sonar`, `sonar-pro` and
// `sonar-reasoning-pro` the preset `low`, and `sonar-deep-research` the preset `medium`.
// These search the web, all others where the request has the tool `web_search`. The
// sources are annotations of the text. Custom tools become functions.
type Provider struct{}

func init() { caddy.RegisterModule(Provider{}) }

// CaddyModule returns the Caddy module information.
func (Provider) CaddyModule() caddy.ModuleInfo { return module.Info[Provider]("perplexity") }

// Prepare implements translate.Provider.
func (Provider) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t)
	if err != nil {
		return nil, err
	}
	return t.Post(ctx, "/v1/responses", translate.Bearer, r)
}

// Error implements translate.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error { return openai.Provider{}.Error(resp) }

var _ translate.Provider = (*Provider)(nil)
