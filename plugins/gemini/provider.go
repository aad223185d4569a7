// Package gemini translates between the neutral request and Google's
// generateContent, of the Gemini API
// (https://ai.google.dev/api/generate-content) and of Vertex AI.
package gemini

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirhq/weir/plugins/module"
	"github.com/weirhq/weir/plugins/translate"
)

// Provider speaks the Gemini API.
//
// The effort of `reasoning` becomes a thinking level, or with models that count
// their thoughts in tokens a thinking budget; strict functions make the calls of
// all functions keep to their schemas. `web_search` becomes the search of
// Google, `code_interpreter` the execution of code. What has no equivalent is
// refused, or left out with a warning.
type Provider struct{ generateContent }

func init() { caddy.RegisterModule(Provider{}) }

// CaddyModule returns the Caddy module information.
func (Provider) CaddyModule() caddy.ModuleInfo { return module.Info[Provider]("gemini") }

// Prepare implements translate.Provider.
func (Provider) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	r, err := newRequest(p, t, false)
	if err != nil {
		return nil, err
	}
	return r.post(ctx, t, apiVersion+"models/", Provider{}.KeyHeader())
}

// KeyHeader implements translate.KeyHeader.
func (Provider) KeyHeader() string { return "X-Goog-Api-Key" }

const apiVersion = "/v1beta/"

// PrepareEndpoint implements translate.Endpoints: of these, it has embeddings, which Google serves in
// OpenAI's format, too (https://ai.google.dev/gemini-api/docs/openai#embeddings).
func (Provider) PrepareEndpoint(ctx context.Context, method, path string, t translate.Target) (*http.Request, error) {
	if path != "/v1/embeddings" {
		return nil, errors.ErrUnsupported
	}
	return t.Request(ctx, method, apiVersion+"openai/embeddings", translate.Bearer)
}

// post returns the HTTP request to the target's model. path is the beginning of the model's resource name.
func (r *request) post(ctx context.Context, t translate.Target, path, keyHeader string) (*http.Request, error) {
	method := ":generateContent"
	if r.request.Stream {
		method = ":streamGenerateContent?alt=sse" // without, the stream is one JSON array
	}
	return t.Post(ctx, path+url.PathEscape(strings.TrimPrefix(t.Model, "models/"))+method, keyHeader, r)
}

var (
	_ translate.Provider  = (*Provider)(nil)
	_ translate.KeyHeader = (*Provider)(nil)
	_ translate.Endpoints = (*Provider)(nil)
)
