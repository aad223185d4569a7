package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Live is Gemini's and Vertex's two-way stream over a WebSocket. A message of the server
// with usage ends what the model says to what the client has said before.
// https://ai.google.dev/api/live
func init() {
	Register(Dialect{
		Name:      plugins.Live,
		Operation: "generate_content",
		Paths: []string{
			"GenerativeService.BidiGenerateContent", "GenerativeService.BidiGenerateContentConstrained",
			"LlmBidiService/BidiGenerateContent", // Vertex
		},
		Signs: []string{"setupComplete:{", "serverContent:{"},
		Request: tables(namedPart.Under("clientContent.turns.#.parts.#"), Table{
			"setup.model":                 Model,
			"realtimeInput.audio":         Media,
			"realtimeInput.video":         Media,
			"realtimeInput.mediaChunks.#": Media,
		}),
		Response: tables(geminiUsage, errorFields.Under("error"), Table{
			"usageMetadata.responseTokenCount":                   Output,
			"usageMetadata.trafficType":                          ServiceTier, // Vertex
			"usageMetadata.serviceTier":                          ServiceTier,
			"serverContent.modelTurn.parts.#.text":               Content,
			"serverContent.modelTurn.parts.#.inlineData":         Content,
			"serverContent.modelTurn.parts.#.executableCode":     Content,
			"serverContent.outputTranscription.text":             Content,
			"serverContent.groundingMetadata.webSearchQueries":   Items,
			"serverContent.groundingMetadata.webSearchQueries.#": SearchQuery,
			"toolCall.functionCalls.#":                           Content,
		}, modalities("tokenCount", outputDetail).Under("usageMetadata.responseTokensDetails.#")),
		TwoWay: &TwoWay{
			Conversation: true,
			Media: []string{
				"realtimeInput.audio", "realtimeInput.video", "realtimeInput.mediaChunks", "serverContent.modelTurn.parts.0.inlineData",
			},
			Speaks: []string{"serverContent.modelTurn", "serverContent.outputTranscription", "toolCall", "usageMetadata"},
			Ends:   "usageMetadata",
		},
		Transcript: transcript.Format{
			Calls: transcript.GenerateContent.Calls,
			Input: []string{"#.setup.systemInstruction", "#.clientContent.turns", "#.realtimeInput.text", "#.toolResponse"},
		},
	})
}
