package observe

import "slices"

// responses is OpenAI's Responses: the object itself, or a stream of events
// whose lifecycle events hold it.
var responses = dialect{
	fields: compile(responsesFields...),
	last:   responsesLast,
}

var openRouterResponses = dialect{
	fields: compile(slices.Concat(responsesFields, []table{{
		"usage.cost":          reportedCost,
		"response.usage.cost": reportedCost,
	}})...),
	last: responsesLast,
}

var responsesLast = []string{
	"response.completed", "response.incomplete", "response.failed", "response.cancelled",
}

var responsesFields = []table{
	responseObject,
	responseObject.under("response"),
	responsesUsage.under("usage"),
	responsesUsage.under("response.usage"),
	errorFields.under("error"),
	errorFields.under("response.error"),
	{
		"":                  sentinel,
		"type":              eventType,
		"code":              ownErrorCode,
		"delta":             content,
		"item.type":         outputType,
		"partial_image_b64": content,
	},
}

var responseObject = table{
	"id":                                 responseID,
	"model":                              model,
	"status":                             finish,
	"service_tier":                       tier,
	"output.#.type":                      outputType,
	"output.#.content.#.text":            content,
	"output.#.content.#.refusal":         content,
	"output.#.summary.#.text":            content,
	"tool_usage.web_search.num_requests": webSearches,
}

var responsesUsage = table{
	"input_tokens":                            input,
	"input_tokens_details.cached_tokens":      cacheRead,
	"input_tokens_details.cache_write_tokens": cacheWrite,
	"input_tokens_details.audio_tokens":       inputAudio,
	"input_tokens_details.image_tokens":       inputImage,
	"output_tokens":                           output,
	"output_tokens_details.reasoning_tokens":  reasoning,
	"output_tokens_details.audio_tokens":      outputAudio,
	"output_tokens_details.image_tokens":      outputImage,
	"total_tokens":                            total,
	"cost_in_usd_ticks":                       costInTicks, // xAI
}
