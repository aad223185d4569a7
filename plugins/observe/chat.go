package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Chat is OpenAI's Chat Completions, with what other providers add to it.
// https://platform.openai.com/docs/api-reference/chat
func init() {
	Register(Dialect{
		Name: plugins.Chat,
		Paths: []string{
			"/chat/completions",
			"/deployments/{model}/chat/completions",           // Azure
			"/engines/{model}/chat/completions",               // LiteLLM
			"/models/{model}/v1/chat/completions",             // Hugging Face
			"/fim/completions",                                // Mistral
			"/agents/completions",                             // Mistral
			"/publishers/mistralai/models/{model}:rawPredict", // Vertex
			"/publishers/mistralai/models/{model}:streamRawPredict",
		},
		Signs: []string{
			`choices:[`,
			`object:"chat.completion"`,
			`object:"chat.completion.chunk"`,
			`object:"chat.completion.done"`, // Perplexity
		},
		Request:      chatRequest,
		OutputLimits: []string{"max_completion_tokens", "max_tokens"},
		Response:     chatResponse,
		Object:       []string{"choices:["},
		Variants:     chatVariants,
		// https://platform.openai.com/docs/guides/tools-web-search
		Searchers:   []string{"-search-preview", "-search-api"},
		AfterFinish: plugins.Finished,
		Failures:    chatFailures,

		Interruptions: chatInterruptions,
		Transcript:    transcript.Chat,
	})
}

// Completions is OpenAI's legacy Completions, whose text has another path than
// that of Chat.
func init() {
	Register(Dialect{
		Name:      plugins.Completions,
		Operation: "text_completion",
		Paths: []string{
			"/completions", "/deployments/{model}/completions",
			"/engines/{model}/completions",                // OpenAI's first
			"/text/generation", "/text/generation_stream", // watsonx
		},
		Signs:        []string{`object:"text_completion"`},
		Request:      chatRequest,
		OutputLimits: []string{"max_tokens"},
		Response:     tables(chatResponse, watsonx),
		Object:       []string{"choices:["},
		Variants:     chatVariants,
		AfterFinish:  plugins.Finished,
		Failures:     chatFailures,

		Interruptions: chatInterruptions,
		Transcript:    transcript.Completions,
	})
}

// The finish reasons of failures are those of Mistral and OpenRouter, and of DeepSeek
// (https://api-docs.deepseek.com/api/create-chat-completion); of interruptions those of Z.ai
// (https://docs.z.ai/api-reference/llm/chat-completion) and of vLLM.
var (
	chatFailures      = []string{"error", "insufficient_system_resource"}
	chatInterruptions = []string{"network_error", "abort"}
)

var chatRequest = tables(modelRequest, openAIParts, messagesIn("messages"), openAICache, Table{
	"stream_options.include_usage": IncludeUsage,
	"tools":                        Tools,
	"functions":                    Tools,
}, cacheControl.Under("messages.#.content.#")) // OpenRouter

var openAIParts = tables(typedPart.Under("messages.#.content.#"), typedPart.Under("messages.#.tool_calls.#"))

// chatVariants are the fields that have a meaning only with some providers.
// The providers with a bare "cost" count in US dollars; elsewhere it could be of any currency.
var chatVariants = map[string]Table{
	"avian":       {"usage.cost": Cost},
	"deepinfra":   {"usage.estimated_cost": Cost},
	"huggingface": {"usage.estimated_cost": Cost},
	"openrouter":  openRouterCost.Under("usage"),
	"perplexity":  {"usage.reasoning_tokens": ReasoningBeside}, // deep research
	"venice":      {"cost": Cost, "cost.usd": Cost, "usage.cost": Cost},
	"xai":         {"usage.completion_tokens_details.reasoning_tokens": ReasoningBeside},
	"vercel": tables(vercelCost, Table{
		"choices.#.message.provider_metadata.gateway.cost": Cost,
		"choices.#.delta.provider_metadata.gateway.cost":   Cost,
		"usage.completion_tokens_details.reasoning_tokens": ReasoningUnclear,
	}),
}

// openRouterCost is what OpenRouter adds to a usage report.
// https://openrouter.ai/docs/use-cases/usage-accounting
var openRouterCost = Table{
	"cost":                                 Cost,
	"is_byok":                              OwnAccount,
	"cost_details.upstream_inference_cost": UpstreamCost,
	"search_units":                         SearchUnits,
}

// vercelCost is what Vercel's AI Gateway adds to a response.
// https://vercel.com/docs/ai-gateway
var vercelCost = tables(openRouterCost.Under("usage"), Table{
	"provider_metadata.gateway.cost": Cost,
	"providerMetadata.gateway.cost":  Cost,
})

// gatewayCosts are what gateways add to the responses of most dialects.
var gatewayCosts = map[string]Table{
	"openrouter": openRouterCost.Under("usage"),
	"vercel":     vercelCost,
}

var chatResponse = tables(
	Table{
		"id":                      ResponseID,
		"model":                   Model,
		"service_tier":            ServiceTier,
		"choices.#":               Choice,
		"choices.#.index":         ChoiceIndex,
		"choices.#.finish_reason": FinishReason,
		"choices.#.text":          Content,
		"timings.cache_n":         CacheRead, // llama.cpp (https://github.com/ggml-org/llama.cpp/tree/master/tools/server#timings-and-context-usage)
	},
	chatMessage.Under("choices.#.delta"),
	chatMessage.Under("choices.#.message"),
	chatUsage.Under("usage"),
	chatUsage.Under("choices.#.usage"), // Moonshot's streams, unasked (https://github.com/QuantumNous/new-api/pull/2550)
	chatUsage.Under("x_groq.usage"),    // in the last chunk of Groq's streams, unasked
	perplexityUsage.Under("usage"),
	errorFields.Under("error"),
	errorFields.Under("choices.#.error"), // OpenRouter
	Table{
		// Mistral's and vLLM's error bodies have no "error".
		"object":  objectName,
		"type":    ownErrorType,
		"code":    ownErrorCode,
		"message": ownErrorText,
	},
)

var chatMessage = tables(toolCalls, Table{
	"content":                     Content,
	"content.#.text":              Content,
	"content.#.thinking.#.text":   Content, // Mistral
	"reasoning":                   Content, // Groq, OpenRouter, Cerebras
	"reasoning_content":           Content, // DeepSeek, Moonshot, Z.ai
	"reasoning_details.#.text":    Content, // OpenRouter
	"reasoning_details.#.summary": Content,
	"refusal":                     Content,
	"function_call":               Content,
	"audio.data":                  Content,
	"audio.transcript":            Content,
	"images.#":                    Content, // OpenRouter
})

// toolCalls are the calls of tools in a message. In a delta of Cohere's, one call stands in
// the place of the list.
var toolCalls = Table{"tool_calls": Content, "tool_calls.#": Content}

var chatUsage = Table{
	"prompt_tokens":                                            Input,
	"prompt_tokens_details.cached_tokens":                      CacheRead,
	"prompt_tokens_details.cache_write_tokens":                 CacheWrite,
	"prompt_tokens_details.cache_creation_input_tokens":        CacheWrite, // DashScope
	"prompt_tokens_details.cache_creation_tokens":              CacheWrite, // LiteLLM
	"prompt_tokens_details.audio_tokens":                       InputAudio,
	"prompt_tokens_details.image_tokens":                       InputImage,
	"prompt_tokens_details.cached_tokens_details.audio_tokens": CacheReadAudio,

	"completion_tokens":                          Output,
	"completion_tokens_details.reasoning_tokens": Reasoning,
	"completion_tokens_details.audio_tokens":     OutputAudio,
	"completion_tokens_details.image_tokens":     OutputImage,
	"total_tokens":                               Total,

	"cached_tokens":                       CacheRead,     // Moonshot
	"num_cached_tokens":                   CacheRead,     // Mistral
	"prompt_token_details.cached_tokens":  CacheRead,     // Mistral
	"prompt_audio_seconds":                AudioSeconds,  // Mistral
	"prompt_cache_hit_tokens":             CacheRead,     // DeepSeek
	"prompt_cache_miss_tokens":            UncachedInput, // DeepSeek
	"reasoning_tokens":                    Reasoning,
	"server_tool_use.web_search_requests": WebSearches, // OpenRouter
	"cost_in_usd_ticks":                   CostInTicks, // xAI
	"cost.usd":                            Cost,        // Charm Hyper
}

// perplexityUsage is what Perplexity adds to the usage of its Chat Completions and of its
// Responses.
var perplexityUsage = Table{
	"input_tokens_details.cache_creation_input_tokens": CacheWrite,
	"num_search_queries":                       WebSearches,
	"tool_calls_details.search_web.invocation": WebSearches,
	"cost.total_cost":                          Cost,
}

// watsonx is what answers of IBM's watsonx.ai have where OpenAI's have choices or data.
// https://cloud.ibm.com/apidocs/watsonx-ai
var watsonx = Table{
	"model_id":                        Model,
	"input_token_count":               Input,
	"results.#.input_token_count":     InputPart,
	"results.#.generated_token_count": Output,
	"results.#.generated_text":        Content,
	"results.#.stop_reason":           FinishReason,
}

// errorFields are the fields of an error that are the same in all JSON dialects.
var errorFields = Table{
	"":        Error,
	"type":    ErrorType,
	"code":    ErrorCode,
	"status":  ErrorCode, // Google
	"message": ErrorText,
}
