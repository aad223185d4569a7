package observe

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
	"github.com/weirhq/weir/plugins/transcript"
)

// TwoWay says how a dialect has responses in a two-way stream, such as a WebSocket's.
// Events of both sides are JSON objects with a "type"; those of a response that is
// not the only one have its id as "response_id" or "response.id". Where events have
// neither, Speaks and Ends tell the responses.
type TwoWay struct {
	// Create is the type of the client's event that asks for a response, "" if the server
	// begins each.
	Create string
	// Conversation is true where a response answers all that the client has said
	// since the one before, and where the provider may begin one unasked. Its events
	// without a response's id belong to none.
	Conversation bool
	// Media are the types of events that carry a piece of audio or an image, of
	// which nothing is kept: the object of the whole response has none either. Of events
	// without a type they are gjson paths.
	Media []string
	// Speaks are gjson paths of the events by which the model begins a response, or goes on
	// with it. All that follows until its end belongs to it. An error answers a command of the
	// client, and ends the response only if nothing follows. Default: events name their response.
	Speaks []string
	// Ends is the gjson path of the event that ends a response, "" if its type does.
	Ends string
	// Transcriber are the places of the model that transcribes what the client says,
	// as gjson paths. Events without a response's id that report usage report its, of
	// the "item_id" that an event of the type Heard had.
	Transcriber []string
	Heard       string
	// Delegated are the types of events that carry an event or answer of another call, which the
	// provider makes for the conversation and bills by itself.
	Delegated map[string]Delegated
}

// Delegated is where an event carries that of another call, as a gjson path, and the dialect of that
// call.
type Delegated struct {
	Path    string
	Dialect plugins.Dialect
}

// TwoWayOf returns how dialect d has responses in a two-way stream, nil if it has
// none.
func TwoWayOf(d plugins.Dialect) *TwoWay { return lookup(d).Dialect.TwoWay }

// IsMedia reports whether nothing is kept of an event of that type.
func (w *TwoWay) IsMedia(kind string, event []byte) bool {
	if kind == "" {
		return hasAny(event, w.Media)
	}
	return slices.Contains(w.Media, kind)
}

// IsSpeech reports whether an event that names no response belongs to one.
func (w *TwoWay) IsSpeech(event []byte) bool { return hasAny(event, w.Speaks) }

// IsEnd reports whether an event that names no response ends the one under way.
func (w *TwoWay) IsEnd(event []byte) bool {
	return w.Ends != "" && gjson.GetBytes(event, w.Ends).Exists()
}

func hasAny(event []byte, paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool { return gjson.GetBytes(event, path).Exists() })
}

// Envelope reads the type of an event of a two-way stream, and the id of the response
// that it belongs to, "" where it names none.
func Envelope(event []byte) (kind, response string) {
	kind = gjson.GetBytes(event, "type").Str
	if response = gjson.GetBytes(event, "response_id").Str; response == "" {
		response = gjson.GetBytes(event, "response.id").Str
	}
	return kind, response
}

// NewEvents reads a two-way stream, such as a WebSocket's, in which every Write is
// a whole event.
func NewEvents(d plugins.Dialect, provider string) plugins.Observer {
	x := New(d, provider, nil).(*observer)
	x.framing = &messageFraming{x}
	return x
}

// messageFraming is the framing of a transport that keeps events apart, such as a WebSocket.
type messageFraming struct{ to streams.Sink }

func (m *messageFraming) Write(p []byte) {
	m.to.Data(p)
	m.to.Dispatch(nil)
}

func (m *messageFraming) Close() {}

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
