// Package chat translates between the neutral request and OpenAI's Chat Completions
// API (https://platform.openai.com/docs/api-reference/chat), as OpenAI and the
// vendors that adopted it speak it. One table lists their differences.
package chat

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/translate"
)

// Provider speaks Chat Completions as one vendor does.
//
// The effort of `reasoning` becomes the vendor's own setting, at the nearest
// level that the model has; a `json_schema` becomes a response format, or with
// vendors that enforce none an instruction. Custom tools become functions.
// `web_search` becomes what the vendor searches with, and the tools that xAI
// hosts those of its Responses API. What has no equivalent is refused, or left
// out with a warning.
type Provider struct {
	vendor *vendor
}

// For is the provider that speaks to a kind of vendor, nil if there is no such
// kind. "openai" is OpenAI's own Chat Completions, for models and servers that
// have no Responses API.
func For(kind string) *Provider {
	for i := range vendors {
		if vendors[i].name == kind {
			return &Provider{&vendors[i]}
		}
	}
	return nil
}

const chatPath = "/chat/completions"

// Prepare implements translate.Provider.
func (p *Provider) Prepare(ctx context.Context, r *translate.Request, t translate.Target) (*http.Request, error) {
	if p.vendor.responds(r) {
		return openai.Provider{}.Prepare(ctx, r, t)
	}
	translated, err := newRequest(p.vendor, r, t)
	if err != nil {
		return nil, err
	}
	return t.Post(ctx, chatPath, translate.Bearer, translated)
}

// Error implements translate.Provider.
func (p *Provider) Error(resp *http.Response) *plugins.Error { return openai.Provider{}.Error(resp) }

// PrepareNative implements translate.Native.
func (p *Provider) PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*http.Request, error) {
	if d != plugins.Chat || p.vendor.refuses(body, t.Capabilities) { // and gets a translation
		return nil, errors.ErrUnsupported
	}
	return t.Post(ctx, chatPath, translate.Bearer, plugins.WithModel(body, t.Model))
}

// PrepareEndpoint implements translate.Endpoints.
func (p *Provider) PrepareEndpoint(ctx context.Context, method, path string, t translate.Target) (*http.Request, error) {
	if some := p.vendor.endpoints; some != nil && !slices.ContainsFunc(some, func(name string) bool {
		below, ok := strings.CutPrefix(path, "/v1/"+name)
		return ok && (below == "" || below[0] == '/')
	}) {
		return nil, errors.ErrUnsupported
	}
	return openai.Provider{}.PrepareEndpoint(ctx, method, path, t)
}

// CallsMCP implements translate.MCPCaller.
func (p *Provider) CallsMCP(r *translate.Request) bool { return p.vendor.responds(r) }

// responds reports whether the vendor answers in its Responses API: if the request has
// tools that it hosts there, and no others that are hosted.
func (v *vendor) responds(p *translate.Request) bool {
	hosted := false
	for i := range p.Tools {
		if t := &p.Tools[i]; t.Hosted() {
			if !slices.Contains(v.tools.hostsInResponses, t.Type) || t.Offline() {
				return false
			}
			hosted = true
		}
	}
	return hosted
}

var (
	_ translate.Provider  = (*Provider)(nil)
	_ translate.Native    = (*Provider)(nil)
	_ translate.Adapter   = (*Provider)(nil)
	_ translate.Endpoints = (*Provider)(nil)
	_ translate.MCPCaller = (*Provider)(nil)
)
