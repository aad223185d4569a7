package vertex

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/gemini"
	"github.com/weirhq/weir/plugins/retrieval"
	"github.com/weirhq/weir/plugins/translate"
)

// instance is a text, and parameters are those of all texts of a request
// (https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api).
type (
	instance struct {
		Content  string `json:"content"`
		TaskType string `json:"task_type,omitempty"`
	}
	parameters struct {
		AutoTruncate         *bool `json:"autoTruncate,omitempty"`
		OutputDimensionality int64 `json:"outputDimensionality,omitempty"`
	}
	prediction struct {
		Instances  []instance `json:"instances"`
		Parameters parameters `json:"parameters"`
	}
)

// TranslateEndpoint implements translate.EndpointTranslator for Google's models that embed texts.
func (v Provider) TranslateEndpoint(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	publisher, model := publisherOf(t.Model)
	if d != plugins.Embeddings || publisher != "google" {
		return nil, errors.ErrUnsupported
	}
	if t.Tags != nil {
		return nil, plugins.Rejected(http.StatusForbidden, translate.NotTagged, "The invoice of the provider has tags of each call, and Google has no labels for embeddings.")
	}
	e, err := retrieval.ParseEmbeddings(body)
	if err != nil {
		return nil, err
	}
	cuts, err := e.CutsEnd()
	if err != nil {
		return nil, err
	}
	size := len(e.Texts)
	if strings.HasPrefix(model, "gemini-") { // takes one text a request
		size = 1
	}
	path := "/v1/projects/" + v.Project + "/locations/" + v.Location + "/publishers/google/models/" + url.PathEscape(model) + ":predict"
	return e.Call(t.Model, size, func(texts []string) (*http.Request, error) {
		p := prediction{Parameters: parameters{cuts, e.Dimensions}}
		for _, text := range texts {
			p.Instances = append(p.Instances, instance{text, gemini.TaskTypes[e.InputType]})
		}
		return t.Post(ctx, path, translate.Bearer, p)
	}, readPredictions), nil
}

func readPredictions(a translate.EndpointAnswer) retrieval.Vectors {
	v := retrieval.Vectors{Tokens: plugins.Known(0)}
	for _, p := range gjson.GetBytes(a.Body, "predictions").Array() {
		tokens := p.Get("embeddings.statistics.token_count")
		v.All = append(v.All, p.Get("embeddings.values"))
		v.Tokens = plugins.Count{N: v.Tokens.N + tokens.Int(), Valid: v.Tokens.Valid && tokens.Type == gjson.Number}
	}
	return v
}

var _ translate.EndpointTranslator = (*Provider)(nil)
