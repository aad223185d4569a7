package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Speech is OpenAI's text to speech. Its answers are audio, which says nothing of usage,
// or a stream of events that does.
// https://platform.openai.com/docs/api-reference/audio/createSpeech
func init() {
	Register(Dialect{
		Name:      plugins.Speech,
		Operation: "generate_content",
		Paths:     []string{"/audio/speech", "/deployments/{model}/audio/speech"},
		Signs:     []string{`type:"speech.audio.delta"`},
		Request:   modelRequest,
		Response: tables(errorFields.Under("error"), Table{
			"type":                EventType,
			"audio":               Content,
			"usage.input_tokens":  Input,
			"usage.output_tokens": Output,
			"usage.total_tokens":  Total,
		}),
		Variants:   gatewayCosts,
		LastEvents: []string{"speech.audio.done"},
		Transcript: transcript.Format{Input: []string{"input", "instructions"}},
	})
}

// Moderations is OpenAI's, with what Mistral adds: it charges tokens.
// https://platform.openai.com/docs/api-reference/moderations
func init() {
	Register(Dialect{
		Name:      plugins.Moderations,
		Operation: "moderation", // OpenTelemetry has no name for it
		Paths:     []string{"/moderations", "/chat/moderations"},
		Signs:     []string{"results.#.category_scores:"},
		Request:   tables(modelRequest, typedPart.Under("input.#")),
		Response: tables(chatUsage.Under("usage"), errorFields.Under("error"), Table{
			"id":    ResponseID,
			"model": Model,
		}),
		Transcript: transcript.Format{Input: []string{"input"}},
	})
}
