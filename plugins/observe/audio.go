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
			"audio_data":          Content, // Mistral
			"usage.input_tokens":  Input,
			"usage.output_tokens": Output,
			"usage.total_tokens":  Total,
		}),
		Object:      []string{`audio_data:"`}, // Mistral
		AudioOutput: true,
		Variants:    gatewayCosts,
		LastEvents:  []string{"speech.audio.done"},
		Transcript: transcript.Format{
			Input: []string{"input", "instructions"},
			Chunk: transcript.Object(transcript.Fields{"type": transcript.Drop, "audio": transcript.Join, "audio_data": transcript.Join}),
		},
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
		Response: tables(errorFields.Under("error"), Table{
			"id":    ResponseID,
			"model": Model,

			// The total of Mistral's may be more than the sum of both, and is not charged.
			"usage.prompt_tokens":     Input,
			"usage.completion_tokens": Output,
		}),
		Object:     []string{"results:["},
		Transcript: transcript.Format{Input: []string{"input"}},
	})
}

// Transcription is OpenAI's speech to text, as JSON or as a stream, with what
// Mistral adds. Models report tokens, or the length of the audio.
// https://platform.openai.com/docs/api-reference/audio/createTranscription
func init() {
	Register(Dialect{
		Name:      plugins.Transcription,
		Operation: "generate_content",
		Paths: []string{
			"/audio/transcriptions", "/deployments/{model}/audio/transcriptions",
			"/audio/translations", "/deployments/{model}/audio/translations",
		},
		Signs:   []string{`type:"transcript.text.delta"`, `type:"transcription.language"`, `type:"transcription.text.delta"`},
		Request: modelRequest, // of a form, mostly
		Response: tables(errorFields.Under("error"), Table{
			"id":                                     ResponseID,
			"model":                                  Model,
			"type":                                   EventType,
			"text":                                   Content,
			"delta":                                  Content,
			"duration":                               AudioSeconds,
			"usage.seconds":                          AudioSeconds,
			"usage.input_tokens":                     Input,
			"usage.input_token_details.audio_tokens": InputAudio,
			"usage.output_tokens":                    Output,
			"usage.prompt_audio_seconds":             AudioSeconds, // Mistral
			"usage.prompt_tokens":                    Input,
			"usage.completion_tokens":                Output,
			"usage.total_tokens":                     Total,
			"usage.cost_in_usd_ticks":                CostInTicks,
		}),
		Object:     []string{`text:"`},
		Variants:   gatewayCosts,
		LastEvents: []string{"transcript.text.done", "transcription.done"},
		Transcript: transcript.Format{
			// The last event has the whole text.
			Chunk:  transcript.Object(transcript.Fields{"type": transcript.Drop, "delta": transcript.Drop}),
			Output: []string{"text"},
		},
	})
}

// OCR is Mistral's reading of documents, which is charged by the page. Pages with
// annotations have another price, so they are not counted.
// https://docs.mistral.ai/api/#tag/ocr
func init() {
	Register(Dialect{
		Name:      plugins.OCR,
		Operation: "generate_content",
		Paths:     []string{"/v1/ocr"},
		Signs:     []string{"usage_info:{"},
		Request: tables(modelRequest, Table{
			"document": Media,
		}),
		Response: tables(errorFields.Under("error"), Table{
			"object":                            objectName,
			"type":                              ownErrorType,
			"code":                              ownErrorCode,
			"message":                           ownErrorText,
			"model":                             Model,
			"pages.#.markdown":                  Content,
			"document_annotation":               Annotation,
			"pages.#.images.#.image_annotation": Annotation,
			"usage_info.pages_processed":        Pages,
		}),
		Transcript: transcript.Format{Output: []string{"pages.#.markdown"}},
	})
}
