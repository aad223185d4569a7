package gemini

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/retrieval"
	"github.com/weirhq/weir/plugins/translate"
)

// TaskTypes are Google's names for what vectors are for.
var TaskTypes = map[retrieval.InputType]string{
	retrieval.Query: "RETRIEVAL_QUERY", retrieval.Document: "RETRIEVAL_DOCUMENT",
	retrieval.Classification: "CLASSIFICATION", retrieval.Clustering: "CLUSTERING",
}

// embeddingRequest is a text of a request of batchEmbedContents (https://ai.google.dev/api/embeddings).
type embeddingRequest struct {
	Model                string           `json:"model"`
	Content              embeddingContent `json:"content"`
	TaskType             string           `json:"taskType,omitempty"`
	OutputDimensionality int64            `json:"outputDimensionality,omitempty"`
}

type embeddingContent struct {
	Parts [1]embeddingText `json:"parts"`
}

type embeddingText struct {
	Text string `json:"text"`
}

// maxBatch is how many texts a request of batchEmbedContents has at most.
const maxBatch = 100

// TranslateEndpoint implements translate.EndpointTranslator for embeddings with parameters that
// Google's endpoint in OpenAI's format does not take.
func (Provider) TranslateEndpoint(ctx context.Context, d plugins.Dialect, body *plugins.Object, t translate.Target) (*translate.EndpointCall, error) {
	has := func(name string) bool { return body.Get(name).Exists() }
	if d != plugins.Embeddings || !slices.ContainsFunc([]string{"input_type", "truncate", "truncation"}, has) {
		return nil, errors.ErrUnsupported
	}
	e, err := retrieval.ParseEmbeddings(body)
	if err != nil {
		return nil, err
	}
	if e.Truncate != "" {
		return nil, plugins.Unsupported("truncate", "Unsupported parameter: 'truncate' is not supported by the provider.")
	}
	name := strings.TrimPrefix(t.Model, "models/")
	return e.Call(t.Model, min(len(e.Texts), maxBatch), func(texts []string) (*http.Request, error) {
		var batch struct {
			Requests []embeddingRequest `json:"requests"`
		}
		for _, text := range texts {
			batch.Requests = append(batch.Requests, embeddingRequest{"models/" + name, embeddingContent{[1]embeddingText{{text}}}, TaskTypes[e.InputType], e.Dimensions})
		}
		return t.Post(ctx, apiVersion+"models/"+url.PathEscape(name)+":batchEmbedContents", Provider{}.KeyHeader(), batch)
	}, readEmbeddings), nil
}

func readEmbeddings(a translate.EndpointAnswer) retrieval.Vectors {
	tokens := gjson.GetBytes(a.Body, "usageMetadata.promptTokenCount")
	v := retrieval.Vectors{Tokens: plugins.Count{N: tokens.Int(), Valid: tokens.Type == gjson.Number}}
	for _, embedding := range gjson.GetBytes(a.Body, "embeddings").Array() {
		v.All = append(v.All, embedding.Get("values"))
	}
	return v
}

var _ translate.EndpointTranslator = (*Provider)(nil)
