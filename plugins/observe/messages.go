package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Messages is Anthropic's Messages: the message itself, or a stream of events. Its
// message_start has the input's counts and a placeholder of output, its
// message_delta the final counts, lately with the input's again.
// https://docs.claude.com/en/api/messages
func init() {
	Register(Dialect{
		Name: plugins.Messages,
		Paths: []string{
			"/v1/messages",
			"/publishers/anthropic/models/{model}:rawPredict", // Vertex
			"/publishers/anthropic/models/{model}:streamRawPredict",
		},
		Signs:        []string{`type:"message"`, `type:"message_start"`},
		Request:      messagesRequest,
		OutputLimits: []string{"max_tokens"},
		Response:     messagesResponse,
		Object:       []string{"content:["},
		Variants:     map[string]Table{"vercel": vercelCost, "dashscope": dashScopeInput},
		LastEvents:   messagesLast,
		Transcript:   transcript.Messages,
	})
}

// TextCompletions is Anthropic's API before Messages, which reports no tokens.
// https://docs.claude.com/en/api/complete
func init() {
	Register(Dialect{
		Name:         plugins.TextCompletions,
		Operation:    "text_completion",
		Paths:        []string{"/v1/complete"},
		Signs:        []string{`type:"completion"`},
		Request:      modelRequest,
		OutputLimits: []string{"max_tokens_to_sample"},
		Response: tables(errorFields.Under("error"), Table{
			"id":          ResponseID,
			"model":       Model,
			"type":        EventType,
			"completion":  Content,
			"stop_reason": FinishReason,
		}),
		Object:      []string{`completion:"`},
		AfterFinish: plugins.Ended,
		Transcript: transcript.Format{
			Input:  []string{"prompt"},
			Output: []string{"completion"}, Message: "completion", Finish: "stop_reason",
			Chunk: transcript.Object(transcript.Fields{"completion": transcript.Join}),
		},
	})
}

// CountTokens is Anthropic's count of a request's tokens, which costs nothing.
func init() {
	Register(Dialect{
		Name:       plugins.CountTokens,
		Paths:      []string{"/v1/messages/count_tokens"},
		Request:    messagesRequest,
		Response:   errorFields.Under("error"),
		Object:     []string{"input_tokens:0"},
		Transcript: transcript.Format{Input: transcript.Messages.Input, Calls: transcript.Messages.Calls},
	})
}

var messagesLast = []string{"message_stop"}

var messagesRequest = tables(modelRequest, anthropicParts, anthropicOutline)

var anthropicOutline = tables(messagesIn("messages"), Table{"system": Instructions, "tools": Tools},
	cacheControl, cacheControl.Under("system.#"), typedPart.Under("system.#"), cacheControl.Under("tools.#"),
	cacheControl.Under("messages.#.content.#"), cacheControl.Under("messages.#.content.#.content.#"))

// anthropicParts has those of tools' results too.
var anthropicParts = tables(typedPart.Under("messages.#.content.#"), typedPart.Under("messages.#.content.#.content.#"))

var messagesResponse = tables(
	message,
	message.Under("message"),
	messagesUsage.Under("usage"),
	messagesUsage.Under("message.usage"),
	errorFields.Under("error"),
	Table{
		"type":               EventType,
		"delta.stop_reason":  FinishReason,
		"delta.text":         Content,
		"delta.thinking":     Content,
		"delta.partial_json": Content,
		"content_block.type": OutputType,
		// Another model goes on where one has declined: message_start named the first.
		// https://platform.claude.com/docs/en/build-with-claude/refusals-and-fallback
		"content_block.to.model": Model,
		"content_block.text":     Content,
		"content_block.data":     Content, // redacted thinking
	},
)

var message = Table{
	"id":          ResponseID,
	"model":       Model,
	"stop_reason": FinishReason,
	"content.#":   Content,
}

var messagesUsage = tables(messagesTokens, Table{
	"output_tokens_details.thinking_tokens": Reasoning,
	"server_tool_use.web_search_requests":   WebSearches,
	"service_tier":                          ServiceTier,
	"speed":                                 Speed,
	"inference_geo":                         InferenceGeo,

	"iterations":   Parts,
	"iterations.#": Part,
}, messagesIteration.inParts().Under("iterations.#"))

// messagesIteration is one time that a model was asked for a message, see observer.bill.
var messagesIteration = tables(messagesTokens, Table{"type": EventType, "model": Model})

// dashScopeInput says that the input of DashScope's Messages has in it what the cache served or took,
// as that of Chat Completions has (https://github.com/jeremychone/rust-genai/pull/258).
var dashScopeInput = Table{"usage.input_tokens": EstimatedInput, "message.usage.input_tokens": EstimatedInput}

// The counts of input leave out what the cache served or took.
var messagesTokens = Table{
	"input_tokens":                             UncachedInput,
	"cache_read_input_tokens":                  CacheRead,
	"cache_creation_input_tokens":              CacheWrite,
	"cache_creation.ephemeral_5m_input_tokens": CacheWrite5m,
	"cache_creation.ephemeral_1h_input_tokens": CacheWrite1h,
	"output_tokens":                            Output,
}
