package main

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins/catalog"
)

// origin says where the data of one of Weir's providers comes from.
type origin struct {
	id        string
	genai     string   // its id in genai-prices
	modelsDev []string // its ids in models.dev
	fallback  []string // Weir's providers whose models and prices it resells
	maker     string   // who makes its models, where that is the provider itself
	sells     func(model string) bool
}

var origins = []origin{
	{id: "openai", genai: "openai", modelsDev: []string{"openai"}, maker: "openai"},
	{id: "azure", genai: "azure", modelsDev: []string{"azure"},
		fallback: []string{"openai", "anthropic", "deepseek", "xai", "moonshotai"}},
	{id: "anthropic", genai: "anthropic", modelsDev: []string{"anthropic"}, maker: "anthropic"},
	{id: "gemini", genai: "google", modelsDev: []string{"google"}, maker: "google",
		sells: func(m string) bool { return !onlyVertex(m) }},
	{id: "vertex", genai: "google", modelsDev: []string{"google-vertex", "google-vertex-anthropic"},
		fallback: []string{"gemini", "anthropic"}, sells: onlyVertex},
	{id: "bedrock", genai: "aws", modelsDev: []string{"amazon-bedrock"}},
	{id: "cohere", genai: "cohere", modelsDev: []string{"cohere"}, maker: "cohere"},
	{id: "mistral", genai: "mistral", modelsDev: []string{"mistral"}, maker: "mistral"},
	{id: "groq", genai: "groq", modelsDev: []string{"groq"}},
	{id: "deepseek", genai: "deepseek", modelsDev: []string{"deepseek"}, maker: "deepseek"},
	{id: "xai", genai: "x-ai", modelsDev: []string{"xai"}, maker: "xai"},
	{id: "together", genai: "together", modelsDev: []string{"togetherai"}},
	{id: "fireworks", genai: "fireworks", modelsDev: []string{"fireworks-ai"}},
	{id: "openrouter", genai: "openrouter", modelsDev: []string{"openrouter"}},
	{id: "perplexity", genai: "perplexity", modelsDev: []string{"perplexity"}, maker: "perplexity"},
	{id: "cerebras", genai: "cerebras", modelsDev: []string{"cerebras"}},
	{id: "huggingface", modelsDev: []string{"huggingface"}},
	{id: "zai", genai: "zai", modelsDev: []string{"zai"}, maker: "zai"},
	{id: "zhipuai", genai: "zhipuai", modelsDev: []string{"zhipuai"}, maker: "zai"},
	{id: "moonshotai", genai: "moonshotai", modelsDev: []string{"moonshotai"}, maker: "moonshotai"},
	{id: "minimax", genai: "minimax", modelsDev: []string{"minimax"}, maker: "minimax"},
	{id: "novita", genai: "novita", modelsDev: []string{"novita-ai"}},
	{id: "ovhcloud", genai: "ovhcloud", modelsDev: []string{"ovhcloud"}},
	{id: "baseten", modelsDev: []string{"baseten"}},
	{id: "deepinfra", modelsDev: []string{"deepinfra"}},
	{id: "nebius", modelsDev: []string{"nebius"}},
	{id: "scaleway", modelsDev: []string{"scaleway"}},
	{id: "siliconflow", modelsDev: []string{"siliconflow"}},
}

// believes reports whether prices are to be kept. Both sources also write 0 for
// what they don't know, so that it is believed of what is known to be free alone.
func (o origin) believes(model string, prices []catalog.Price) bool {
	free := strings.HasSuffix(model, ":free") || o.id == "openai" && model == "moderation"
	return free || !slices.ContainsFunc(prices, func(p catalog.Price) bool { return p.Input.Nano()+p.Output.Nano() == 0 })
}

// onlyVertex reports whether Vertex AI has a model that the Gemini API lacks.
// genai-prices has one list for the two.
func onlyVertex(model string) bool {
	return strings.Contains(model, "claude") || strings.HasSuffix(model, "-maas")
}

// makers are the spellings of makers that differ from the one Weir uses.
var makers = map[string]string{
	"ai21labs": "ai21", "alibaba": "qwen", "deepseek-ai": "deepseek", "meta-llama": "meta", "minimaxai": "minimax",
	"mistralai": "mistral", "moonshot": "moonshotai", "x-ai": "xai", "z-ai": "zai", "zai-org": "zai", "zhipuai": "zai",
}
