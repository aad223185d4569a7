package observe

import (
	"sync"

	"github.com/weirhq/weir/plugins"
)

// RequestReader reads what a request body says about its call, as the body
// passes, at any chunking and in constant memory. The body is JSON or a form
// (multipart/form-data).
type RequestReader struct {
	request plugins.RequestInfo
	scan    scanner
	outline outliner
	form    *form
	hasData bool
}

// NewRequestReader reads a request of dialect d.
func NewRequestReader(d plugins.Dialect) *RequestReader {
	spoken := lookup(d)
	r := requestReaders.Get().(*RequestReader)
	r.request.Stream = spoken.Streams
	r.scan.to, r.scan.root, r.scan.outline = r, spoken.request, &r.outline
	r.scan.reset()
	return r
}

var requestReaders = sync.Pool{New: func() any { return new(RequestReader) }}

// keepMessages bounds the outlines whose memory is kept for other requests.
const keepMessages = 64

// Free lets another request be read in the memory of this one. The caller must not use
// anything of the reader afterwards, the outline included.
func (r *RequestReader) Free() {
	o := &r.outline
	if len(o.Messages) > keepMessages {
		o.Messages = nil
	}
	*r = RequestReader{
		scan:    r.scan.emptied(),
		outline: outliner{Outline: Outline{Messages: o.Messages[:0]}, role: o.role[:0], text: textHash{letters: o.text.letters[:0]}},
	}
	requestReaders.Put(r)
}

// Write reads the next bytes of the body. It does not keep p.
func (r *RequestReader) Write(p []byte) {
	if !r.hasData && len(p) > 0 {
		r.hasData = true
		if p[0] == '-' { // of a form's boundary: no JSON object begins so
			r.form = &form{to: r}
		}
	}
	if r.form != nil {
		r.form.write(p)
		return
	}
	r.scan.write(p)
}

// Request is what has been learned so far. It stays the reader's and changes
// with every Write.
func (r *RequestReader) Request() *plugins.RequestInfo { return &r.request }

// Outline returns the outline of the request, nil unless the body has ended and is a
// conversation. The outline does not change any more.
func (r *RequestReader) Outline() *Outline {
	o := &r.outline
	if !o.complete || len(o.Messages) == 0 || len(o.Messages) == maxMessages {
		return nil
	}
	return &o.Outline
}

// modelRequest has the fields of almost all requests.
var modelRequest = Table{
	"model":        Model,
	"model_id":     Model, // watsonx
	"stream":       Stream,
	"service_tier": ServiceTier,

	"user":             User,
	"metadata.user_id": User, // Anthropic
}

// typedPart is a part of a message that has a type, as with OpenAI, Anthropic and Cohere.
var typedPart = Table{"type": MediaType}

// namedPart is a part of a message with one member, whose name is the type, as with Converse
// and Gemini.
var namedPart = Table{
	"image":       Media,
	"document":    Media,
	"video":       Media,
	"audio":       Media,
	"inlineData":  Media,
	"inline_data": Media,
	"fileData":    Media,
	"file_data":   Media,
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

func (r *RequestReader) value(f Field, v value) {
	if v.kind == text {
		r.outline.value(f, v)
	}
	isTrue := v.kind == boolean && string(v.bytes) == "true"
	switch f {
	case Model:
		set(&r.request.Model, v)
	case Stream:
		r.request.Stream = isTrue
	case IncludeUsage:
		r.request.IncludeUsage = isTrue
	case ServiceTier:
		set(&r.request.ServiceTier, v)
	case User:
		set(&r.request.User, v)
	case MediaType:
		r.request.Media = r.request.Media || mediaTypes[string(v.bytes)]
	case Media:
		r.request.Media = r.request.Media || v.kind == object || v.kind == text && len(v.bytes) > 0
	}
}

func (r *RequestReader) endEvent() {}

// endDocument ends the reading: a request is one value. Others may read the Outline while
// further bytes pass.
func (r *RequestReader) endDocument() {
	r.outline.complete = true
	r.scan.root, r.scan.next = nil, nil
}
