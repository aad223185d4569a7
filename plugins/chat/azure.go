package chat

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/translate"
)

// Azure speaks Chat Completions with a resource of Azure OpenAI, whose
// deployments take the place of models.
//
// `base_url` is the resource, like `https://acme.openai.azure.com`, or its
// version 1 API, like `https://acme.openai.azure.com/openai/v1`, which speaks
// Responses itself, also to clients of Messages.
type Azure struct {
	Provider

	// APIVersion is the `api-version` to ask for. Default: `2024-10-21`, and none
	// with the version 1 API.
	APIVersion string `json:"api_version,omitempty"`
}

// azureVersion is the last version that is generally available of the API
// before version 1.
const azureVersion = "2024-10-21"

// Prepare implements translate.Provider. A client of another API is answered from Responses
// where the resource has them, because Chat Completions return no reasoning.
func (z *Azure) Prepare(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	if p.Names != nil && !hasDeployments(t) {
		req, err := openai.Provider{}.Prepare(ctx, p, ofAzure(t))
		return z.authorize(req, t), err
	}
	req, err := z.Provider.Prepare(ctx, p, atDeployment(t))
	return z.authorize(req, t), err
}

// Adapt implements translate.Adapter.
func (z *Azure) Adapt(d plugins.Dialect, body *plugins.Object, t translate.Target) (adapted []byte, warnings []string) {
	if d == plugins.Responses && hasDeployments(t) { // which do not speak it
		return body.Data, nil
	}
	return openai.Provider{}.Adapt(d, body, ofAzure(t))
}

// Decode implements translate.Provider.
func (z *Azure) Decode(resp *http.Response, a *translate.Assembler) error {
	if resp.Request != nil && strings.HasSuffix(resp.Request.URL.Path, "/responses") {
		return openai.Provider{}.Decode(resp, a)
	}
	return z.Provider.Decode(resp, a)
}

// PrepareNative implements translate.Native. Only version 1 of Azure's API has Responses without
// a date of its own.
func (z *Azure) PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*http.Request, error) {
	if d == plugins.Responses || d == plugins.InputTokens {
		if !strings.HasSuffix(t.BaseURL, "/openai/v1") {
			return nil, errors.ErrUnsupported
		}
		req, err := openai.Provider{}.PrepareNative(ctx, d, body, ofAzure(t))
		return z.authorize(req, t), err
	}
	if d == plugins.Chat && !hasDeployments(t) && openai.NeedsResponses(t, body) { // which Prepare asks
		return nil, errors.ErrUnsupported
	}
	req, err := z.Provider.PrepareNative(ctx, d, body, atDeployment(t))
	return z.authorize(req, t), err
}

// PrepareCount implements translate.Counter. A resource that does not count answers 404
// (https://github.com/openai/openai-dotnet/issues/1165).
func (z *Azure) PrepareCount(ctx context.Context, p *translate.Request, t translate.Target) (*http.Request, error) {
	if hasDeployments(t) {
		return nil, errors.ErrUnsupported
	}
	req, err := openai.Provider{}.PrepareCount(ctx, p, ofAzure(t))
	return z.authorize(req, t), err
}

// Tokens implements translate.Counter.
func (*Azure) Tokens(body []byte) (n int64, ok bool) { return openai.Provider{}.Tokens(body) }

// PrepareEndpoint implements translate.Endpoints. A request without a model has no
// deployment. Realtime exists in version 1 of the API.
func (z *Azure) PrepareEndpoint(ctx context.Context, method, path string, t translate.Target) (*http.Request, error) {
	if path == "/v1/realtime" && hasDeployments(t) {
		return nil, errors.ErrUnsupported
	}
	if t.Model != "" {
		t = atDeployment(t)
	} else if hasDeployments(t) {
		t.BaseURL += "/openai"
	}
	req, err := z.Provider.PrepareEndpoint(ctx, method, path, t)
	return z.authorize(req, t), err
}

// hasDeployments reports whether the deployment is named by the path, which
// version 1 of the API leaves to the body.
func hasDeployments(t translate.Target) bool { return !strings.HasSuffix(t.BaseURL, "/v1") }

// ofAzure is a target that is Azure's whatever its host.
func ofAzure(t translate.Target) translate.Target {
	t.Vendor = "azure"
	return t
}

func atDeployment(t translate.Target) translate.Target {
	if hasDeployments(t) {
		t.BaseURL += "/openai/deployments/" + url.PathEscape(t.Model)
	}
	return t
}

// authorize gives a request, if there is one, the version and the key as Azure
// wants them.
func (z *Azure) authorize(req *http.Request, t translate.Target) *http.Request {
	if req == nil {
		return nil
	}
	version := z.APIVersion
	if version == "" && hasDeployments(t) {
		version = azureVersion
	}
	if version != "" {
		req.URL.RawQuery = url.Values{"api-version": {version}}.Encode()
	}
	req.Header.Del("Authorization")
	if t.Key != "" {
		req.Header.Set(z.KeyHeader(), t.Key)
	}
	return req
}

// KeyHeader implements translate.KeyHeader.
func (*Azure) KeyHeader() string { return "Api-Key" }

var (
	_ translate.Provider  = (*Azure)(nil)
	_ translate.Native    = (*Azure)(nil)
	_ translate.Adapter   = (*Azure)(nil)
	_ translate.Counter   = (*Azure)(nil)
	_ translate.Endpoints = (*Azure)(nil)
	_ translate.KeyHeader = (*Azure)(nil)
)
