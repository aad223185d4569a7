package chat

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/openai"
)

// Azure speaks Chat Completions with a resource of Azure OpenAI, whose
// deployments take the place of models.
//
// `base_url` is the resource, like `https://acme.openai.azure.com`, or its
// version 1 API, like `https://acme.openai.azure.com/openai/v1`, which speaks
// Responses itself.
type Azure struct {
	Provider
	openai.Azure

	// APIVersion is the `api-version` to ask for. Default: `2024-10-21`, and none
	// with the version 1 API.
	APIVersion string `json:"api_version,omitempty"`
}

// azureVersion is the last version that is generally available of the API
// before version 1.
const azureVersion = "2024-10-21"

// Prepare implements plugins.Provider.
func (z *Azure) Prepare(ctx context.Context, p *plugins.Prompt, t plugins.Target) (*http.Request, error) {
	version := z.APIVersion
	if !strings.HasSuffix(t.BaseURL, "/v1") {
		t.BaseURL += "/openai/deployments/" + url.PathEscape(t.Model)
		if version == "" {
			version = azureVersion
		}
	}
	req, err := z.Provider.Prepare(ctx, p, t)
	if err != nil {
		return nil, err
	}
	if version != "" {
		req.URL.RawQuery = url.Values{"api-version": {version}}.Encode()
	}
	req.Header.Del("Authorization")
	if t.Key != "" {
		req.Header.Set("Api-Key", t.Key)
	}
	return req, nil
}

var (
	_ plugins.Provider = (*Azure)(nil)
	_ plugins.Native   = (*Azure)(nil)
)
