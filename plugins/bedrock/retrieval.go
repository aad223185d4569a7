package bedrock

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/retrieval"
	"github.com/weirhq/weir/plugins/translate"
)

// TranslateEndpoint implements translate.EndpointTranslator for the models of Amazon and Cohere that
// embed texts or rank documents. They are called by InvokeModel, in their maker's format.
func (b *Provider) TranslateEndpoint(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	name := cmp.Or(t.Listed, t.Model)
	switch {
	case d == plugins.Embeddings && strings.Contains(name, "amazon.titan-embed-text"):
		return b.titan(ctx, body, t, !strings.Contains(name, "-v1"))
	case d == plugins.Embeddings && strings.Contains(name, "cohere.embed"):
		return b.cohereEmbed(ctx, body, t)
	case d == plugins.Rerank && strings.Contains(name, ".rerank"):
		return b.rerank(ctx, body, t)
	}
	return nil, errors.ErrUnsupported
}

// titanRequest is a request of Amazon's Titan, which embeds one text
// (https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters-titan-embed-text.html).
type titanRequest struct {
	InputText  string `json:"inputText"`
	Dimensions int64  `json:"dimensions,omitempty"`
}

func (b *Provider) titan(ctx context.Context, body *plugins.Object, t translate.Target, shortens bool) (*translate.EndpointCall, error) {
	e, err := retrieval.ParseEmbeddings(body)
	if err != nil {
		return nil, err
	}
	if e.Dimensions > 0 && !shortens {
		return nil, plugins.Unsupported("dimensions", "Unsupported parameter: the model has vectors of one length.")
	}
	if e.InputType != "" {
		e.LeaveOut("input_type")
	}
	if e.Truncate != "" {
		e.LeaveOut("truncate")
	}
	return e.Call(t.Model, 1, func(texts []string) (*http.Request, error) {
		return b.invoke(ctx, t, titanRequest{texts[0], e.Dimensions})
	}, readTitan), nil
}

func readTitan(a translate.EndpointAnswer) retrieval.Vectors {
	answer := gjson.ParseBytes(a.Body)
	tokens := answer.Get("inputTextTokenCount")
	return retrieval.Vectors{
		All:    []gjson.Result{answer.Get("embedding")},
		Tokens: plugins.Count{N: tokens.Int(), Valid: tokens.Type == gjson.Number},
	}
}

func (b *Provider) cohereEmbed(ctx context.Context, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	e, err := retrieval.ParseEmbeddings(body)
	if err != nil {
		return nil, err
	}
	return e.Call(t.Model, len(e.Texts), func([]string) (*http.Request, error) {
		return b.invoke(ctx, t, e.ForCohere())
	}, retrieval.ReadCohere), nil
}

// rerankRequest is what models of both makers take. Cohere's demand their version
// (https://github.com/cohere-ai/cohere-python/issues/613).
type rerankRequest struct {
	Query      string   `json:"query"`
	Documents  []string `json:"documents"`
	TopN       int64    `json:"top_n,omitempty"`
	APIVersion int      `json:"api_version,omitempty"`
}

func (b *Provider) rerank(ctx context.Context, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	r, err := retrieval.ParseRerank(body)
	if err != nil {
		return nil, err
	}
	request := rerankRequest{Query: r.Query, Documents: r.Documents, TopN: r.TopN}
	if strings.Contains(cmp.Or(t.Listed, t.Model), "cohere.") {
		request.APIVersion = 2
	}
	req, err := b.invoke(ctx, t, request)
	if err != nil {
		return nil, err
	}
	return r.Call("results", req), nil
}

func (b *Provider) invoke(ctx context.Context, t translate.Target, request any) (*http.Request, error) {
	body, err := translate.Encode(request)
	if err != nil {
		return nil, err
	}
	return b.post(ctx, t, "invoke", body)
}

var _ translate.EndpointTranslator = (*Provider)(nil)
