package retrieval

import (
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// cohereInputTypes are Cohere's names. Models since version 3 demand one.
var cohereInputTypes = map[InputType]string{
	"": "search_document", Query: "search_query", Document: "search_document",
	Classification: "classification", Clustering: "clustering",
}

// ForCohere is the body of a request of Cohere's Embed, without a model
// (https://docs.cohere.com/reference/embed).
func (e *Embeddings) ForCohere() map[string]any {
	body := map[string]any{
		"texts":           e.Texts,
		"input_type":      cohereInputTypes[e.InputType],
		"embedding_types": []string{"float"},
	}
	if e.Dimensions > 0 {
		body["output_dimension"] = e.Dimensions
	}
	if e.Truncate != "" {
		body["truncate"] = e.Truncate
	}
	return body
}

// ReadCohere reads the vectors of Cohere's Embed, whose answer counts the tokens, as it does at
// Cohere, or whose header does, as at Bedrock.
func ReadCohere(a translate.EndpointAnswer) Vectors {
	answer := gjson.ParseBytes(a.Body)
	list := answer.Get("embeddings")
	if list.IsObject() {
		list = list.Get("float")
	}
	tokens := answer.Get("meta.billed_units.input_tokens")
	if !tokens.Exists() {
		tokens = gjson.Parse(a.Header.Get("X-Amzn-Bedrock-Input-Token-Count"))
	}
	return Vectors{All: list.Array(), Tokens: plugins.Count{N: tokens.Int(), Valid: tokens.Type == gjson.Number}}
}
