package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// CohereChat is Cohere's Chat v2. It bills for other counts than it reports as
// tokens, which include its own preamble.
// https://docs.cohere.com/reference/chat
func init() {
	Register(Dialect{
		Name:       plugins.CohereChat,
		Paths:      []string{"/v2/chat"},
		Signs:      []string{`message:{`, `type:"message-start"`},
		Request:    tables(modelRequest, typedPart.Under("messages.#.content.#"), messagesIn("messages"), Table{"tools": Tools}),
		Response:   cohereResponse,
		LastEvents: []string{"message-end"},
		Failures:   []string{"ERROR"},

		Interruptions: []string{"TIMEOUT"},
		Transcript:    transcript.CohereChat,
	})
}

// CohereText is Cohere's Chat and Generate of version 1. The last line of their
// streams holds the whole response.
// https://docs.cohere.com/v1/reference/chat
func init() {
	Register(Dialect{
		Name:      plugins.CohereText,
		Paths:     []string{"/v1/chat", "/v1/generate"},
		Providers: []string{"cohere"},
		Signs:     []string{`event_type:"stream-start"`, `generation_id:"`},
		Request:   modelRequest,
		Response: tables(
			cohereText,
			cohereText.Under("response"),
			cohereUsage.Under("meta"),
			cohereUsage.Under("response.meta"),
			Table{
				"event_type":  EventType,
				"is_finished": Done,
				"message":     ErrorMessage,
			},
		),
		Lines: true,
		Transcript: transcript.Format{
			Input:   []string{"preamble", "chat_history.#.message", "message", "prompt"},
			Output:  []string{"text", "generations.#.text"},
			Message: "text",
			Finish:  "finish_reason",
			Chunk:   transcript.Object(transcript.Fields{"text": transcript.Join}),
		},
	})
}

// CohereEmbed is Cohere's embeddings, of both versions.
// https://docs.cohere.com/reference/embed
func init() {
	Register(Dialect{
		Name:       plugins.CohereEmbed,
		Operation:  "embeddings",
		NoOutput:   true,
		Paths:      []string{"/v1/embed", "/v2/embed"},
		Signs:      []string{`response_type:"embeddings_by_type"`, `response_type:"embeddings_floats"`},
		Request:    tables(modelRequest, Table{"images.#": Media, "inputs.#.content.#.type": MediaType}),
		Response:   tables(cohereEmbedResponse, Table{"id": ResponseID, "message": ErrorMessage}),
		Transcript: transcript.Format{Input: []string{"texts", "inputs"}},
	})
}

// Rerank is Cohere's, and what Voyage, Jina, OpenRouter and others took over of it.
// https://docs.cohere.com/reference/rerank
func init() {
	Register(Dialect{
		Name:      plugins.Rerank,
		Operation: "rerank", // OpenTelemetry has no name for it
		NoOutput:  true,
		Paths:     []string{"/rerank"},
		Signs:     []string{"results.#.relevance_score:"},
		Request:   modelRequest,
		Response: tables(errorFields.Under("error"), watsonx, Table{
			"id":                             ResponseID,
			"model":                          Model,
			"message":                        ErrorMessage,
			"meta.billed_units.search_units": SearchUnits,
			"meta.tokens.input_tokens":       Input,
			"usage.total_tokens":             Input, // Voyage, Jina
			"usage.prompt_tokens":            Input,
			"usage.cost_in_usd_ticks":        CostInTicks,
		}),
		Object:     []string{"results:[", "data:["}, // the latter is Voyage's
		Variants:   gatewayCosts,
		Transcript: transcript.Format{Input: []string{"query", "documents"}},
	})
}

var cohereResponse = tables(
	Table{
		"id":                          ResponseID,
		"type":                        EventType,
		"finish_reason":               FinishReason,
		"delta.finish_reason":         FinishReason,
		"delta.error":                 Error,
		"message":                     ErrorMessage,
		"generations.#.text":          Content, // InvokeModel's Command
		"generations.#.finish_reason": FinishReason,
	},
	cohereMessage.Under("message"),
	cohereMessage.Under("delta.message"),
	cohereUsage.Under("usage"),
	cohereUsage.Under("delta.usage"),
	errorFields.Under("error"),
)

// A stream's delta holds one part or call, a message the list of them.
var cohereMessage = tables(toolCalls, Table{
	"content.text":       Content,
	"content.thinking":   Content,
	"content.#.text":     Content,
	"content.#.thinking": Content,
	"tool_plan":          Content,
})

var cohereUsage = Table{
	"tokens.input_tokens":        Input,
	"tokens.output_tokens":       Output,
	"cached_tokens":              CacheRead,
	"billed_units.input_tokens":  BilledInput,
	"billed_units.output_tokens": BilledOutput,
}

var cohereText = tables(toolCalls, Table{
	"response_id":                 ResponseID,
	"id":                          ResponseID, // of a generate
	"text":                        Content,
	"finish_reason":               FinishReason,
	"generations.#.text":          Content,
	"generations.#.finish_reason": FinishReason,
})

var cohereEmbedResponse = Table{
	"meta.billed_units.input_tokens": BilledInput,
	"meta.billed_units.image_tokens": InputImage,
}
