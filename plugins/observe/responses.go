package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Responses is OpenAI's Responses: the object itself, or a stream of events whose
// lifecycle events hold it. Over a WebSocket the events are the same.
// https://platform.openai.com/docs/api-reference/responses
func init() {
	Register(Dialect{
		Name:  plugins.Responses,
		Paths: []string{"/responses", "/deployments/{model}/responses", "/v1/agent"}, // the last is Perplexity's
		Signs: []string{
			`object:"response"`,
			`type:"response.created"`,
			`type:"response.queued"`,
			`type:"response.in_progress"`,
			`type:"response.failed"`,
		},
		Polled:       []string{"/responses/{id}"},
		Request:      responsesRequest,
		OutputLimits: []string{"max_output_tokens"},
		Response:     responsesResponse,
		Object:       []string{"output:["},
		Variants: map[string]Table{
			"openrouter": tables(openRouterCost.Under("usage"), openRouterCost.Under("response.usage")),
			"vercel":     tables(vercelCost, vercelCost.Under("response")),
		},
		LastEvents: []string{"response.completed", "response.incomplete", "response.failed", "response.cancelled", "response.done"},
		Failures:   []string{"failed", "cancelled"},
		TwoWay: &TwoWay{
			Create: "response.create",
			Media:  []string{"response.image_generation_call.partial_image"},
		},
		Transcript: transcript.Responses,
	})
}

// Compaction is OpenAI's compaction of a conversation, whose object has the fields of a
// response.
// https://platform.openai.com/docs/api-reference/responses/compact
func init() {
	Register(Dialect{
		Name:       plugins.Compaction,
		Paths:      []string{"/responses/compact"},
		Signs:      []string{`object:"response.compaction"`},
		Request:    responsesRequest,
		Response:   responsesResponse,
		Object:     []string{"output:["},
		Transcript: transcript.Responses,
	})
}

// InputTokens is OpenAI's count of a request's tokens, which costs nothing.
// https://platform.openai.com/docs/api-reference/responses/input-tokens
func init() {
	Register(Dialect{
		Name:       plugins.InputTokens,
		Paths:      []string{"/responses/input_tokens"},
		Signs:      []string{`object:"response.input_tokens"`},
		Request:    responsesRequest,
		Response:   errorFields.Under("error"),
		Object:     []string{"input_tokens:0"},
		Transcript: transcript.Format{Input: transcript.Responses.Input, Calls: transcript.Responses.Calls},
	})
}

var responsesRequest = tables(modelRequest, typedPart.Under("input.#"), typedPart.Under("input.#.content.#"),
	typedPart.Under("input.#.output.#"), // a tool's
	messagesIn("input"), openAICache, Table{
		"instructions":         Instructions,
		"tools":                Tools,
		"previous_response_id": PreviousResponse,
	})

var responsesResponse = tables(
	responseObject,
	responseObject.Under("response"),
	responsesUsage.Under("usage"),
	responsesUsage.Under("response.usage"),
	errorFields.Under("error"),
	errorFields.Under("response.error"),
	Table{
		"type":              EventType,
		"code":              ownErrorCode,
		"message":           ownErrorText,
		"delta":             Content,
		"item.type":         OutputType,
		"partial_image_b64": Content,
	},
)

var responseObject = tables(Table{
	"id":                                 ResponseID,
	"model":                              Model,
	"status":                             FinishReason,
	"service_tier":                       ServiceTier,
	"output":                             Items,
	"output.#.type":                      Item,
	"output.#.action.type":               ItemAction,
	"output.#.content.#.text":            Content,
	"output.#.content.#.refusal":         Content,
	"output.#.summary.#.text":            Content,
	"output.#.encrypted_content":         Content, // a compaction
	"tools.#.model":                      PictureModel,
	"tool_usage.image_gen":               Parts,
	"tool_usage.web_search.num_requests": WebSearches,
}, imageTokens.inParts().Under("tool_usage.image_gen"))

// imageTokens are the counts of the models that make pictures.
var imageTokens = Table{
	"input_tokens":                       Input,
	"input_tokens_details.image_tokens":  InputImage,
	"cached_tokens":                      CacheRead,
	"output_tokens":                      Output,
	"output_tokens_details.image_tokens": OutputImage,
}

var responsesUsage = tables(perplexityUsage, Table{
	"input_tokens":                            Input,
	"input_tokens_details.cached_tokens":      CacheRead,
	"input_tokens_details.cache_write_tokens": CacheWrite,
	"input_tokens_details.audio_tokens":       InputAudio,
	"input_tokens_details.image_tokens":       InputImage,
	"output_tokens":                           Output,
	"output_tokens_details.reasoning_tokens":  Reasoning,
	"output_tokens_details.audio_tokens":      OutputAudio,
	"output_tokens_details.image_tokens":      OutputImage,
	"total_tokens":                            Total,
	"cost_in_usd_ticks":                       CostInTicks, // xAI
})
