// Package cohere translates between the neutral request and version 2 of
// Cohere's Chat API (https://docs.cohere.com/reference/chat).
package cohere

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/plugins/module"
	"github.com/weirhq/weir/plugins/translate"
)

// Provider speaks version 2 of Cohere's Chat API.
//
// The effort of `reasoning` becomes a share of `max_output_tokens` to think
// with; a `json_schema` becomes a response format, which Cohere does not take
// beside tools. Custom tools become functions. What has no equivalent is
// refused, or left out with a warning.
type Provider struct{}

func init() { caddy.RegisterModule(Provider{}) }

// CaddyModule returns the Caddy module information.
func (Provider) CaddyModule() caddy.ModuleInfo { return module.Info[Provider]("cohere") }

// Prepare implements translate.Provider.
func (Provider) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t)
	if err != nil {
		return nil, err
	}
	return t.Post(ctx, "/v2/chat", translate.Bearer, r)
}

// PrepareEndpoint implements translate.Endpoints. Embeddings in OpenAI's format are below
// a path of their own (https://docs.cohere.com/docs/compatibility-api).
func (Provider) PrepareEndpoint(ctx context.Context, method, path string, t translate.Target) (*http.Request, error) {
	switch path {
	case "/v1/rerank", "/v2/rerank":
	case "/v1/embeddings":
		path = "/compatibility" + path
	default:
		return nil, errors.ErrUnsupported
	}
	return t.Request(ctx, method, path, translate.Bearer)
}

var (
	_ translate.Provider  = (*Provider)(nil)
	_ translate.Endpoints = (*Provider)(nil)
)
