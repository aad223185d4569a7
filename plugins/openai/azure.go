package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Azure speaks the Responses API of a resource of Azure OpenAI. A provider of
// Azure's embeds it.
type Azure struct{}

// PrepareNative implements translate.Native. Only version 1 of Azure's API has
// Responses without a date of its own: its base URL is like
// https://acme.openai.azure.com/openai/v1.
func (Azure) PrepareNative(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*http.Request, error) {
	if !strings.HasSuffix(t.BaseURL, "/openai/v1") {
		return nil, errors.ErrUnsupported
	}
	key := t.Key
	t.Key = ""
	req, err := (Provider{}).PrepareNative(ctx, d, body, t)
	if err == nil && key != "" {
		req.Header.Set("Api-Key", key)
	}
	return req, err
}

var _ translate.Native = (*Azure)(nil)
