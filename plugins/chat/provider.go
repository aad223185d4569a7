// Package chat translates between the neutral request and OpenAI's Chat
// Completions API (https://platform.openai.com/docs/api-reference/chat), as
// OpenAI and the vendors who took it over speak it. In what these differ stands
// in one table.
package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"

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

// DefaultTarget is the vendor's own API, "" for one that has no single address,
// and the environment variable that holds its key, "" for one that needs none.
func (p *Provider) DefaultTarget() (baseURL, keyEnv string) {
	return plugins.DefaultTarget(p.vendor.name)
}

// Prepare implements plugins.Provider.
func (p *Provider) Prepare(ctx context.Context, prompt *translate.Request, t translate.Target) (*http.Request, error) {
	if p.vendor.responds(prompt) {
		return openai.Provider{}.Prepare(ctx, prompt, t)
	}
	r, err := newRequest(p.vendor, prompt, t)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return post(ctx, t, "/chat/completions", &body)
}

// PrepareNative implements plugins.Native.
func (p *Provider) PrepareNative(ctx context.Context, d plugins.Dialect, body []byte, t translate.Target) (*http.Request, error) {
	switch {
	case d == plugins.Chat:
		return post(ctx, t, "/chat/completions", bytes.NewReader(plugins.WithModel(body, t.Model)))
	case d == plugins.Embeddings && p.vendor.embeddings:
		return post(ctx, t, "/embeddings", bytes.NewReader(plugins.WithModel(body, t.Model)))
	}
	return nil, errors.ErrUnsupported
}

func post(ctx context.Context, t translate.Target, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.BaseURL+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if t.Key != "" {
		req.Header.Set("Authorization", "Bearer "+t.Key)
	}
	return req, nil
}

// responds reports whether the vendor answers in its Responses API.
func (v *vendor) responds(p *translate.Request) bool {
	return v.hostsInResponses && slices.ContainsFunc(p.Tools, func(t translate.Tool) bool { return t.Hosted() })
}

var (
	_ translate.Provider = (*Provider)(nil)
	_ translate.Native   = (*Provider)(nil)
)
