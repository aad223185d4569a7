package chat

import (
	"context"
	"errors"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/retrieval"
	"github.com/weirhq/weir/plugins/translate"
)

// TranslateEndpoint implements translate.EndpointTranslator for closed vendors, which refuse
// embeddings with OpenAI's names of parameters.
func (p *Provider) TranslateEndpoint(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	api := retrieval.For(p.vendor.name)
	if api == nil {
		return nil, errors.ErrUnsupported
	}
	return api.TranslateEndpoint(ctx, d, body, t)
}

var _ translate.EndpointTranslator = (*Provider)(nil)
