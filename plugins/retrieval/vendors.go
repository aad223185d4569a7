package retrieval

import (
	"context"
	"errors"
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/openai"
	"github.com/weirhq/weir/plugins/translate"
)

// vendor is how one vendor names what OpenAI's Embeddings and Cohere's Rerank have. "" is for what
// the vendor lacks.
type vendor struct {
	name string // the kind of provider

	dimensions string               // the length of vectors
	inputType  string               // what the vectors are for
	inputTypes map[InputType]string // its values
	truncate   string               // true cuts off what is too long, false makes it an error

	topN    string // how many results there are
	results string // where they are in the answer; "" if the vendor ranks nothing
}

var vendors = []vendor{
	{
		// https://docs.voyageai.com/reference/embeddings-api, /reranker-api
		name:       "voyage",
		dimensions: "output_dimension",
		inputType:  "input_type", inputTypes: map[InputType]string{Query: "query", Document: "document"},
		truncate: "truncation",
		topN:     "top_k", results: "data",
	},
	{
		// https://api.jina.ai/redoc
		name:       "jina",
		dimensions: "dimensions",
		inputType:  "task", inputTypes: map[InputType]string{
			Query: "retrieval.query", Document: "retrieval.passage", Classification: "classification", Clustering: "separation",
		},
		truncate: "truncate",
		topN:     "top_n", results: "results",
	},
	{
		// https://docs.mistral.ai/api/endpoint/embeddings
		name:       "mistral",
		dimensions: "output_dimension",
	},
}

// Provider serves embeddings and rankings in one vendor's format, and no text.
type Provider struct {
	openai.Provider // whose errors are read
	vendor          *vendor
}

// For is the provider of a kind, nil if there is none.
func For(kind string) *Provider {
	for i := range vendors {
		if vendors[i].name == kind {
			return &Provider{vendor: &vendors[i]}
		}
	}
	return nil
}

func init() {
	for _, kind := range []string{"voyage", "jina"} { // the others are modules of their own
		caddy.RegisterModule(For(kind))
	}
}

// CaddyModule returns the Caddy module information.
func (p *Provider) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  caddy.ModuleID("llm.providers." + p.vendor.name),
		New: func() caddy.Module { return &Provider{vendor: p.vendor} },
	}
}

// Prepare implements translate.Provider: these vendors have no model that answers.
func (*Provider) Prepare(context.Context, *translate.Request, translate.Target) (*http.Request, error) {
	return nil, errors.ErrUnsupported
}

// PrepareNative implements translate.Native, which the embedded provider does for other models.
func (*Provider) PrepareNative(context.Context, plugins.Dialect, *plugins.Object, translate.Target) (*http.Request, error) {
	return nil, errors.ErrUnsupported
}

// PrepareEndpoint implements translate.Endpoints likewise.
func (*Provider) PrepareEndpoint(context.Context, string, string, translate.Target) (*http.Request, error) {
	return nil, errors.ErrUnsupported
}

// TranslateEndpoint implements translate.EndpointTranslator.
func (p *Provider) TranslateEndpoint(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	switch {
	case d == plugins.Embeddings:
		return p.embeddings(ctx, body, t)
	case d == plugins.Rerank && p.vendor.results != "":
		return p.rerank(ctx, body, t)
	}
	return nil, errors.ErrUnsupported
}

func (p *Provider) embeddings(ctx context.Context, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	e, err := ParseEmbeddings(body)
	if err != nil {
		return nil, err
	}
	v := p.vendor
	request := map[string]any{"model": t.Model, "input": e.Texts}
	if e.Dimensions > 0 {
		request[v.dimensions] = e.Dimensions
	}
	if e.InputType != "" {
		value, has := v.inputTypes[e.InputType]
		if !has {
			return nil, plugins.Unsupported("input_type", "Unsupported value: the provider has no vectors for '%s'.", e.InputType)
		}
		request[v.inputType] = value
	}
	cuts, err := e.CutsEnd()
	switch {
	case err != nil:
		return nil, err
	case cuts != nil && v.truncate == "":
		return nil, unknown("truncate")
	case cuts != nil:
		request[v.truncate] = *cuts
	}
	return e.Call(t.Model, len(e.Texts), func([]string) (*http.Request, error) {
		return t.Post(ctx, "/embeddings", translate.Bearer, request)
	}, readOpenAI), nil
}

// readOpenAI reads vectors as OpenAI has them. All of these vendors count tokens as a total.
func readOpenAI(a translate.EndpointAnswer) Vectors {
	answer := gjson.ParseBytes(a.Body)
	tokens := answer.Get("usage.total_tokens")
	data := answer.Get("data").Array()
	all := make([]gjson.Result, len(data))
	for i, v := range data {
		if at := v.Get("index"); at.Int() != int64(i) && at.Exists() { // never seen
			return Vectors{}
		}
		all[i] = v.Get("embedding")
	}
	return Vectors{All: all, Tokens: plugins.Count{N: tokens.Int(), Valid: tokens.Type == gjson.Number}}
}

func (p *Provider) rerank(ctx context.Context, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	r, err := ParseRerank(body)
	if err != nil {
		return nil, err
	}
	request := map[string]any{"model": t.Model, "query": r.Query, "documents": r.Documents, "return_documents": false}
	if r.TopN > 0 {
		request[p.vendor.topN] = r.TopN
	}
	req, err := t.Post(ctx, "/rerank", translate.Bearer, request)
	if err != nil {
		return nil, err
	}
	return r.Call(p.vendor.results, req), nil
}

var (
	_ translate.Provider           = (*Provider)(nil)
	_ translate.EndpointTranslator = (*Provider)(nil)
)
