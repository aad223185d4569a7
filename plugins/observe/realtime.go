package observe

import (
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/transcript"
)

// Realtime is OpenAI's Realtime, a two-way stream of events over a WebSocket. Each
// response.done has the usage of its response; transcriptions of the input audio
// report their own. NewEvents reads it.
// https://platform.openai.com/docs/api-reference/realtime-server-events
func init() {
	Register(Dialect{
		Name:  plugins.Realtime,
		Paths: []string{"/realtime", "/deployments/{model}/realtime"},
		Signs: []string{`type:"session.created"`, `type:"response.done"`},
		// A response.create, and the session.update before it.
		Request: Table{
			"session.model":            Model,
			"response.model":           Model,
			"item.content.#.type":      MediaType,
			"response.input.#.content": Media,
		},
		Response: tables(
			realtimeUsage.Under("usage"), // of a transcription
			realtimeUsage.Under("response.usage"),
			errorFields.Under("error"),
			errorFields.Under("response.status_details.error"),
			Table{
				"type":                                   EventType,
				"session.model":                          Model,
				"response.id":                            ResponseID,
				"response.model":                         Model,
				"response.status":                        FinishReason,
				"response.output.#.type":                 OutputType,
				"response.output.#.content.#.text":       Content,
				"response.output.#.content.#.transcript": Content,
				"delta":                                  Content,
				"transcript":                             Content,
			},
		),
		LastEvents: []string{"response.done"},
		TwoWay: &TwoWay{
			Create:       "response.create",
			Conversation: true,
			Media:        []string{"input_audio_buffer.append", "response.output_audio.delta", "response.audio.delta"},
			Transcriber:  []string{"session.audio.input.transcription.model", "session.input_audio_transcription.model"},
			Heard:        "input_audio_buffer.committed",
		},
		Transcript: transcript.Realtime,
	})
}

var realtimeUsage = Table{
	"input_tokens":                                           Input,
	"input_token_details.cached_tokens":                      CacheRead,
	"input_token_details.audio_tokens":                       InputAudio,
	"input_token_details.image_tokens":                       InputImage,
	"input_token_details.cached_tokens_details.audio_tokens": CacheReadAudio,
	"output_tokens":                                          Output,
	"output_token_details.audio_tokens":                      OutputAudio,
	"output_token_details.reasoning_tokens":                  Reasoning,
	"total_tokens":                                           Total,
	"seconds":                                                AudioSeconds,
}
