package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Embeddings is OpenAI's Embeddings. Some providers, such as Voyage, report only a
// total, which is input.
// https://platform.openai.com/docs/api-reference/embeddings
func init() {
	Register(Dialect{
		Name:      plugins.Embeddings,
		Operation: "embeddings",
		NoOutput:  true,
		Paths: []string{
			"/embeddings", "/deployments/{model}/embeddings", "/engines/{model}/embeddings",
			"/multimodalembeddings", "/contextualizedembeddings", // Voyage
		},
		Signs:   []string{"data.#.embedding:"},
		Request: modelRequest,
		Response: tables(errorFields.Under("error"), watsonx, Table{
			"id":                      ResponseID,
			"model":                   Model,
			"usage.prompt_tokens":     Input,
			"usage.total_tokens":      Input,
			"usage.cost.total_cost":   Cost, // Perplexity
			"usage.cost_in_usd_ticks": CostInTicks,
		}),
		Object:     []string{"data:["},
		Variants:   gatewayCosts,
		Transcript: transcript.Format{Input: []string{"input"}},
	})
}
