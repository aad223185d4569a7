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
	litellm   []string // its ids in LiteLLM, which are the first part of its keys too
	bare      bool     // whether LiteLLM's keys may lack that part
	paths     bool     // whether names hold slashes
	fallback  []string // Weir's providers whose models and prices it resells
	maker     string   // who makes its models, where that is the provider itself
	halfReads bool     // whether cached input costs half unless a source says otherwise
	sells     func(model string) bool
}

var origins = []origin{
	{id: "openai", genai: "openai", modelsDev: []string{"openai"}, litellm: []string{"openai", "text-completion-openai"}, bare: true, maker: "openai"},
	{id: "azure", genai: "azure", modelsDev: []string{"azure"}, litellm: []string{"azure", "azure_ai"},
		fallback: []string{"openai", "anthropic", "deepseek", "xai", "moonshotai"}},
	{id: "anthropic", genai: "anthropic", modelsDev: []string{"anthropic"}, litellm: []string{"anthropic"}, bare: true, maker: "anthropic"},
	{id: "gemini", genai: "google", modelsDev: []string{"google"}, litellm: []string{"gemini"}, maker: "google",
		sells: func(m string) bool { return !onlyVertex(m) }},
	{id: "vertex", genai: "google", modelsDev: []string{"google-vertex", "google-vertex-anthropic"},
		litellm: []string{"vertex_ai", "vertex_ai-language-models", "vertex_ai-anthropic_models", "vertex_ai-mistral_models",
			"vertex_ai-llama_models", "vertex_ai-embedding-models", "vertex_ai-deepseek_models", "vertex_ai-qwen_models"},
		paths: true, fallback: []string{"gemini", "anthropic"}, sells: onlyVertex},
	{id: "bedrock", genai: "aws", modelsDev: []string{"amazon-bedrock"}, litellm: []string{"bedrock_converse", "bedrock"}, bare: true},
	{id: "cohere", genai: "cohere", modelsDev: []string{"cohere"}, litellm: []string{"cohere", "cohere_chat"}, bare: true, maker: "cohere"},
	{id: "mistral", genai: "mistral", modelsDev: []string{"mistral"}, litellm: []string{"mistral"}, maker: "mistral"},
	{id: "groq", genai: "groq", modelsDev: []string{"groq"}, litellm: []string{"groq"}, paths: true},
	{id: "deepseek", genai: "deepseek", modelsDev: []string{"deepseek"}, litellm: []string{"deepseek"}, bare: true, maker: "deepseek"},
	{id: "xai", genai: "x-ai", modelsDev: []string{"xai"}, litellm: []string{"xai"}, maker: "xai"},
	{id: "together", genai: "together", modelsDev: []string{"togetherai"}, litellm: []string{"together_ai"}, paths: true},
	{id: "fireworks", genai: "fireworks", modelsDev: []string{"fireworks-ai"}, litellm: []string{"fireworks_ai", "fireworks_ai-embedding-models"}, paths: true,
		halfReads: true}, // https://docs.fireworks.ai/guides/prompt-caching
	{id: "openrouter", genai: "openrouter", modelsDev: []string{"openrouter"}},
	{id: "perplexity", genai: "perplexity", modelsDev: []string{"perplexity"}, litellm: []string{"perplexity"}, paths: true, maker: "perplexity"},
	{id: "cerebras", genai: "cerebras", modelsDev: []string{"cerebras"}, litellm: []string{"cerebras"}},
	{id: "huggingface", modelsDev: []string{"huggingface"}},
	{id: "zai", genai: "zai", modelsDev: []string{"zai"}, litellm: []string{"zai"}, maker: "zai"},
	{id: "zhipuai", genai: "zhipuai", modelsDev: []string{"zhipuai"}, maker: "zai"},
	{id: "moonshotai", genai: "moonshotai", modelsDev: []string{"moonshotai"}, litellm: []string{"moonshot"}, maker: "moonshotai"},
	{id: "minimax", genai: "minimax", modelsDev: []string{"minimax"}, litellm: []string{"minimax"}, maker: "minimax"},
	{id: "novita", genai: "novita", modelsDev: []string{"novita-ai"}, litellm: []string{"novita"}, paths: true},
	{id: "ovhcloud", genai: "ovhcloud", modelsDev: []string{"ovhcloud"}, litellm: []string{"ovhcloud"}},
	{id: "voyage", genai: "voyageai", litellm: []string{"voyage"}, maker: "voyage"},
	{id: "baseten", genai: "baseten", modelsDev: []string{"baseten"}, litellm: []string{"baseten"}, paths: true},
	{id: "deepinfra", modelsDev: []string{"deepinfra"}, litellm: []string{"deepinfra"}, paths: true},
	{id: "nebius", modelsDev: []string{"nebius"}, litellm: []string{"nebius"}, paths: true},
	{id: "scaleway", modelsDev: []string{"scaleway"}, litellm: []string{"scaleway"}, paths: true},
	{id: "siliconflow", modelsDev: []string{"siliconflow"}},
}

// keeps reports whether prices are to be kept. The sources write 0 for free and for unknown: 0 is kept only for
// models that are known to be free.
func (o origin) keeps(model string, prices []catalog.Price) bool {
	free := strings.HasSuffix(model, ":free") || o.id == "openai" && model == "moderation" ||
		o.maker == "zai" && (model == "glm-4.5-flash" || model == "glm-4.7-flash") // https://docs.z.ai/guides/overview/pricing
	return free || !slices.ContainsFunc(prices, func(p catalog.Price) bool {
		return p.Input.Nano()+p.Output.Nano()+p.SearchUnit.Nano()+p.Image.Nano()+p.Page.Nano()+p.AudioHour.Nano() == 0
	})
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
