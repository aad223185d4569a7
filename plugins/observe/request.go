package observe

import "github.com/weirhq/weir/plugins"

// RequestReader reads what a request body says about its call, as the body
// passes, at any chunking and in constant memory.
type RequestReader struct {
	request plugins.RequestInfo
	scan    scanner
}

// NewRequestReader reads a request of dialect d.
func NewRequestReader(d plugins.Dialect) *RequestReader {
	r := new(RequestReader)
	// Ollama streams unless it is told not to.
	r.request.Stream = d == plugins.OllamaChat || d == plugins.OllamaGenerate
	r.scan.to, r.scan.root = r, requestFields
	r.scan.reset()
	return r
}

// Write reads the next bytes of the body. It does not keep p.
func (r *RequestReader) Write(p []byte) { r.scan.write(p) }

// Request is what has been learned so far. It stays the reader's and changes
// with every Write.
func (r *RequestReader) Request() *plugins.RequestInfo { return &r.request }

// requestFields serves all dialects: none of them gives another's path another
// meaning.
var requestFields = compile(
	table{
		"model":                        requestModel,
		"stream":                       requestStream,
		"stream_options.include_usage": requestIncludeUsage,
		"service_tier":                 requestTier,
		"serviceTier":                  requestTier, // Gemini
		"serviceTier.type":             requestTier, // Converse
		"images.#":                     media,       // Ollama's generate
		"messages.#.images.#":          media,       // Ollama's chat
		"input.#.type":                 mediaType,
	},
	part.under("messages.#.content.#"),
	part.under("messages.#.content.#.content.#"),            // Anthropic's tool results
	part.under("messages.#.content.#.toolResult.content.#"), // Converse
	part.under("input.#.content.#"),
	part.under("input.#.output.#"), // a tool's, in Responses
	part.under("contents.#.parts.#"),
	part.under("contents.#.parts.#.functionResponse.parts.#"),
)

// part is a part of a message: OpenAI, Anthropic and Cohere give it a type,
// Converse and Gemini name its one member after it.
var part = table{
	"type":        mediaType,
	"image":       media,
	"document":    media,
	"video":       media,
	"audio":       media,
	"inlineData":  media,
	"inline_data": media,
	"fileData":    media,
	"file_data":   media,
}

var mediaTypes = map[string]bool{
	"image_url":    true,
	"input_image":  true,
	"input_audio":  true,
	"input_file":   true,
	"file":         true,
	"image":        true,
	"document":     true,
	"document_url": true, // Mistral
	"audio_url":    true, // vLLM
	"video_url":    true, // vLLM, OpenRouter
}

func (r *RequestReader) value(f field, v value) {
	isTrue := v.kind == boolean && string(v.bytes) == "true"
	switch f {
	case requestModel:
		set(&r.request.Model, v)
	case requestStream:
		r.request.Stream = isTrue
	case requestIncludeUsage:
		r.request.IncludeUsage = isTrue
	case requestTier:
		set(&r.request.ServiceTier, v)
	case mediaType:
		r.request.Media = r.request.Media || mediaTypes[string(v.bytes)]
	case media:
		r.request.Media = r.request.Media || v.kind == object || v.kind == text && len(v.bytes) > 0
	}
}

func (r *RequestReader) endEvent()    {}
func (r *RequestReader) endDocument() {}
