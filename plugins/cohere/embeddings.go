package cohere

import (
	"context"
	"errors"
	"net/http"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/retrieval"
	"github.com/weirhq/weir/plugins/translate"
)

// TranslateEndpoint implements translate.EndpointTranslator for embeddings with parameters that
// Cohere's endpoint in OpenAI's format does not take.
func (Provider) TranslateEndpoint(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	if d != plugins.Embeddings || !hasOwnParameter(body) {
		return nil, errors.ErrUnsupported
	}
	e, err := retrieval.ParseEmbeddings(body)
	if err != nil {
		return nil, err
	}
	request := e.ForCohere()
	request["model"] = t.Model
	return e.Call(t.Model, len(e.Texts), func([]string) (*http.Request, error) {
		return t.Post(ctx, "/v2/embed", translate.Bearer, request)
	}, retrieval.ReadCohere), nil
}

func hasOwnParameter(body *plugins.Object) bool {
	for _, name := range []string{"dimensions", "input_type", "truncate", "truncation"} {
		if body.Get(name).Exists() {
			return true
		}
	}
	return false
}

var _ translate.EndpointTranslator = (*Provider)(nil)
