package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// GenerateContent is Gemini's and Vertex's: one response object, or a stream of
// them, each with the counts so far, as events or as one array. No event says
// that it is the last: clients stop at the finish reason.
// https://ai.google.dev/api/generate-content
func init() {
	Register(Dialect{
		Name:      plugins.GenerateContent,
		Operation: "generate_content",
		Paths:     []string{"/{model}:generateContent", "/{model}:streamGenerateContent"},
		Signs:     []string{"candidates:", "usageMetadata:", "promptFeedback:"},
		Request: tables(geminiParts, messagesIn("contents"), Table{
			"serviceTier":        ServiceTier,
			"systemInstruction":  Instructions,
			"system_instruction": Instructions,
			"tools":              Tools,
			"cachedContent":      CacheKey,
		}),
		Response: tables(geminiUsage, errorFields.Under("error"), Table{
			"responseId":                                       ResponseID,
			"modelVersion":                                     Model,
			"candidates.#":                                     Choice,
			"candidates.#.index":                               ChoiceIndex,
			"candidates.#.finishReason":                        FinishReason,
			"promptFeedback.blockReason":                       FinishReason,
			"usageMetadata.serviceTier":                        ServiceTier,
			"usageMetadata.trafficType":                        ServiceTier, // Vertex
			"candidates.#.content.parts.#.text":                Content,
			"candidates.#.content.parts.#.functionCall":        Content,
			"candidates.#.content.parts.#.toolCall":            Content,
			"candidates.#.content.parts.#.inlineData":          Content,
			"candidates.#.content.parts.#.fileData":            Content,
			"candidates.#.content.parts.#.executableCode":      Content,
			"candidates.#.content.parts.#.codeExecutionResult": Content,

			"candidates.#.groundingMetadata.webSearchQueries":       Items,
			"candidates.#.groundingMetadata.webSearchQueries.#":     SearchQuery,
			"candidates.#.groundingMetadata.groundingChunks.#.maps": Unstated,
		}),
		AfterFinish: plugins.Ended,
		Transcript:  transcript.GenerateContent,
	})
}

// EmbedContent is Gemini's embeddings. Some models report no usage.
// https://ai.google.dev/api/embeddings
func init() {
	Register(Dialect{
		Name:      plugins.EmbedContent,
		Operation: "embeddings",
		NoOutput:  true,
		Paths:     []string{"/{model}:embedContent", "/{model}:batchEmbedContents"},
		Signs:     []string{"embedding.values:["},
		Request: tables(namedPart.Under("content.parts.#"),
			namedPart.Under("requests.#.content.parts.#")),
		Response:   tables(geminiUsage, errorFields.Under("error")),
		Transcript: transcript.Format{Input: []string{"content", "requests.#.content"}},
	})
}

// Predict is Vertex's and Gemini's method for models of other kinds than Gemini:
// Imagen makes images, and embeddings count their tokens one by one.
// https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.publishers.models/predict
func init() {
	Register(Dialect{
		Name:    plugins.Predict,
		Paths:   []string{"/{model}:predict"},
		Signs:   []string{"predictions:["},
		Request: Table{"instances.#.image": Media, "instances.#.video": Media},
		Response: tables(errorFields.Under("error"), Table{
			"predictions.#.bytesBase64Encoded":                Image,
			"predictions.#.gcsUri":                            Image,
			"predictions.#.embeddings.statistics.token_count": InputPart,
		}),
		Transcript: transcript.Format{Input: []string{"instances.#.prompt", "instances.#.content"}},
	})
}

// Interactions is Gemini's API with a state on the server.
// https://ai.google.dev/gemini-api/docs/interactions
func init() {
	Register(Dialect{
		Name:      plugins.Interactions,
		Operation: "generate_content",
		Paths:     []string{"/interactions"},
		Polled:    []string{"/interactions/{id}"},
		Signs:     []string{`object:"interaction"`, `event_type:"interaction.start"`, `event_type:"interaction.created"`},
		Request: tables(messagesIn("input"), Table{
			"model":                   Model,
			"agent":                   Model,
			"stream":                  Stream,
			"input.type":              MediaType,
			"input.#.type":            MediaType,
			"input.#.content.#.type":  MediaType,
			"system_instruction":      Instructions,
			"tools":                   Tools,
			"previous_interaction_id": PreviousResponse,
		}),
		Response: tables(
			interaction,
			interaction.Under("interaction"),
			errorFields.Under("error"),
			Table{
				"event_type":    EventType,
				"delta.text":    Content,
				"delta.thought": Content,
				"delta.data":    Content,
				"delta.name":    Content, // of a function

				"delta.arguments":    Content, // in pieces
				"delta.content.text": Content, // of a summary

				"delta.arguments.queries.#": SearchQuery,
			},
		),
		LastEvents: []string{"interaction.complete", "interaction.completed", "interaction.failed"},
		Transcript: transcript.Interactions,
	})
}

var interaction = tables(Table{
	"id":                            ResponseID,
	"model":                         Model,
	"agent":                         Model,
	"status":                        FinishReason,
	"service_tier":                  ServiceTier,
	"outputs.#.text":                Content,
	"outputs.#.name":                Content, // of a function
	"outputs.#.data":                Content,
	"steps.#.content.#.text":        Content,
	"outputs":                       Items,
	"outputs.#.arguments.queries.#": SearchQuery,
	"steps":                         Items,
	"steps.#.arguments.queries.#":   SearchQuery,
	"usage.total_input_tokens":      Input,
	"usage.total_tool_use_tokens":   ToolInput,
	"usage.total_cached_tokens":     CacheRead,
	"usage.total_output_tokens":     Output,
	"usage.total_thought_tokens":    ReasoningBeside,
	"usage.total_reasoning_tokens":  ReasoningBeside,
	"usage.total_tokens":            Total,
},
	Table{
		"usage.grounding_tool_count.#":       detail,
		"usage.grounding_tool_count.#.type":  detailName,
		"usage.grounding_tool_count.#.count": groundDetail,
	},
	modalities("tokens", inputDetail).Under("usage.input_tokens_by_modality.#"),
	modalities("tokens", cachedDetail).Under("usage.cached_tokens_by_modality.#"),
	modalities("tokens", outputDetail).Under("usage.output_tokens_by_modality.#"),
)

var geminiParts = tables(namedPart.Under("contents.#.parts.#"),
	namedPart.Under("contents.#.parts.#.functionResponse.parts.#"))

// geminiUsage is the report of usage that all methods for Gemini's models have.
var geminiUsage = tables(Table{
	"usageMetadata":                         Report,
	"usageMetadata.promptTokenCount":        Input,
	"usageMetadata.toolUsePromptTokenCount": ToolInput,
	"usageMetadata.cachedContentTokenCount": CacheRead,
	"usageMetadata.candidatesTokenCount":    Output,
	"usageMetadata.thoughtsTokenCount":      ReasoningBeside,
	"usageMetadata.totalTokenCount":         Total,
},
	modalities("tokenCount", inputDetail).Under("usageMetadata.promptTokensDetails.#"),
	modalities("tokenCount", cachedDetail).Under("usageMetadata.cacheTokensDetails.#"),
	modalities("tokenCount", outputDetail).Under("usageMetadata.candidatesTokensDetails.#"),
)

// modalities is an element of Google's lists of counts by modality.
func modalities(key string, count Field) Table {
	return Table{"": detail, "modality": detailName, key: count}
}

// supersede begins a new report of Google's. A complete report, with its total, has
// no field for a count of 0, so it replaces the last report as a whole. Some chunks
// of Vertex have no count at all, or have zeros.
func (x *observer) supersede() {
	x.settle()
	x.last, x.report, x.reporting = x.report, report{}, true
}

func (x *observer) settle() {
	if x.reporting && x.report.get(Total).N == 0 {
		x.report.fill(&x.last)
		x.changed = true
	}
	x.reporting = false
}
