package observe

import (
	"slices"

	"github.com/weirhq/weir/plugins"
)

// chat is OpenAI's Chat Completions with what the providers who speak it add,
// and the legacy Completions, which differ in where the text stands.
var chat = dialect{
	fields:   compile(chatFields...),
	finished: plugins.Finished,
}

// OpenRouter counts its credits in US dollars. Elsewhere a bare "cost" could be
// of any currency.
var openRouterChat = dialect{
	fields:   compile(slices.Concat(chatFields, []table{{"usage.cost": reportedCost}})...),
	finished: plugins.Finished,
}

// Perplexity's deep research reasons beside its completion.
var perplexityChat = dialect{
	fields:   compile(slices.Concat(chatFields, []table{{"usage.reasoning_tokens": thoughts}})...),
	finished: plugins.Finished,
}

var chatFields = []table{
	{
		"":                        sentinel,
		"id":                      responseID,
		"model":                   model,
		"service_tier":            tier,
		"choices.#":               choice,
		"choices.#.index":         choiceIndex,
		"choices.#.finish_reason": finish,
		"choices.#.text":          content,
	},
	chatMessage.under("choices.#.delta"),
	chatMessage.under("choices.#.message"),
	chatUsage.under("usage"),
	chatUsage.under("x_groq.usage"), // in the last chunk of Groq's streams, unasked
	errorFields.under("error"),
	errorFields.under("choices.#.error"), // OpenRouter
	{
		// Mistral's and vLLM's error bodies have no "error".
		"object": objectName,
		"type":   ownErrorType,
		"code":   ownErrorCode,
	},
}

var chatMessage = table{
	"content":                     content,
	"content.#.text":              content,
	"content.#.thinking.#.text":   content, // Mistral
	"reasoning":                   content, // Groq, OpenRouter, Cerebras
	"reasoning_content":           content, // DeepSeek, Moonshot, Z.ai
	"reasoning_details.#.text":    content, // OpenRouter
	"reasoning_details.#.summary": content,
	"refusal":                     content,
	"tool_calls.#":                content,
	"function_call":               content,
	"audio.data":                  content,
	"audio.transcript":            content,
	"images.#":                    content, // OpenRouter
}

var chatUsage = table{
	"prompt_tokens":                                            input,
	"prompt_tokens_details.cached_tokens":                      cacheRead,
	"prompt_tokens_details.cache_write_tokens":                 cacheWrite,
	"prompt_tokens_details.audio_tokens":                       inputAudio,
	"prompt_tokens_details.image_tokens":                       inputImage,
	"prompt_tokens_details.cached_tokens_details.audio_tokens": cacheReadAudio,

	"completion_tokens":                          output,
	"completion_tokens_details.reasoning_tokens": reasoning,
	"completion_tokens_details.audio_tokens":     outputAudio,
	"completion_tokens_details.image_tokens":     outputImage,
	"total_tokens":                               total,

	"cached_tokens":                       cacheRead,    // Moonshot
	"num_cached_tokens":                   cacheRead,    // Mistral
	"prompt_token_details.cached_tokens":  cacheRead,    // Mistral
	"prompt_audio_seconds":                audioSeconds, // Mistral
	"prompt_cache_hit_tokens":             cacheRead,    // DeepSeek
	"prompt_cache_miss_tokens":            uncached,     // DeepSeek
	"reasoning_tokens":                    reasoning,
	"num_search_queries":                  webSearches,  // Perplexity
	"server_tool_use.web_search_requests": webSearches,  // OpenRouter
	"cost.total_cost":                     reportedCost, // Perplexity
	"cost_in_usd_ticks":                   costInTicks,  // xAI
}

// embeddings is OpenAI's Embeddings. Some report a total alone, which is input.
var embeddings = dialect{
	fields: compile(errorFields.under("error"), table{
		"":                        sentinel,
		"id":                      responseID,
		"model":                   model,
		"usage.prompt_tokens":     input,
		"usage.total_tokens":      input,
		"usage.cost_in_usd_ticks": costInTicks,
	}),
}
