// Package transcript turns the bodies of calls into what is kept and searched: the
// response object of a stream, the text that went in and came out, and the
// media that a request carried. It works on whole bodies, when the call is over.
package transcript

import (
	"bytes"
	"iter"
	"mime"
	"slices"
	"strings"
	"unsafe"

	"github.com/weirhq/weir/plugins"
)

// assemblers make the response object of a stream out of its events. None means
// that the events are not those of the dialect.
var assemblers = map[plugins.Dialect]func(iter.Seq[event]) *node{
	plugins.Chat:            chat,
	plugins.Completions:     completions,
	plugins.Responses:       responses,
	plugins.Messages:        messages,
	plugins.GenerateContent: generateContent,
	plugins.Converse:        converse,
	plugins.Invoke:          invoke,
	plugins.CohereChat:      cohereChat,
	plugins.OllamaChat:      ollama,
	plugins.OllamaGenerate:  ollama,
}

// An Assembler makes the stored forms of bodies, one after the other, in memory
// that it keeps.
type Assembler struct {
	template template
	stored   []byte
}

// Stored returns what is kept of a response body without Content-Encoding, and
// its content type: of a stream, the object that the same call would have
// returned without streaming, as far as the stream came. Fields that Weir does
// not know are part of it. A stream that makes no object, of an unknown dialect
// or without events, and all else are kept as they are: then stored is raw. What
// else is returned is valid until the next call.
func (a *Assembler) Stored(d plugins.Dialect, contentType string, raw []byte) (stored []byte, storedType string) {
	assemble, events := assemblers[d], a.events(d, contentType, raw)
	if assemble == nil || events == nil {
		return raw, contentType
	}
	root := assemble(events)
	a.template.forget()
	if root == nil {
		return raw, contentType
	}
	a.stored = root.appendJSON(a.stored[:0])
	return a.stored, "application/json"
}

// Stored is what a new Assembler returns.
func Stored(d plugins.Dialect, contentType string, raw []byte) (stored []byte, storedType string) {
	return new(Assembler).Stored(d, contentType, raw)
}

// events are those of a stream, nil of another body.
func (a *Assembler) events(d plugins.Dialect, contentType string, raw []byte) iter.Seq[event] {
	// Not a copy: nobody writes to raw, and no node outlives the call.
	s := unsafe.String(unsafe.SliceData(raw), len(raw))
	mediaType, _, _ := mime.ParseMediaType(contentType)
	switch mediaType {
	case "text/event-stream":
		if d == plugins.Responses {
			if last, ok := completed(s); ok {
				return slices.Values([]event{last})
			}
		}
		return a.template.objects(sse(s))
	case "application/x-ndjson":
		return a.template.objects(strings.Lines(s))
	case "application/vnd.amazon.eventstream":
		return frames(raw)
	case "application/json":
		// Gemini without alt=sse streams the elements of an array.
		if d == plugins.GenerateContent && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
			return a.template.objects(array(s))
		}
	}
	return nil
}
