// Package body turns the bodies of calls into what is kept and searched: the
// response object of a stream, the text that went in and came out, and the
// media that a request carried. It works on whole bodies, when the call is over.
package body

import (
	"bytes"
	"mime"

	"github.com/weirhq/weir/plugins"
)

// assemblers make the response object of a stream out of its events. None means
// that the events are not those of the dialect.
var assemblers = map[plugins.Dialect]func([]event) *node{
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

// Stored returns what is kept of a response body without Content-Encoding, and
// its content type: of a stream, the object that the same call would have
// returned without streaming, as far as the stream came. Fields that Weir does
// not know are part of it. A stream that makes no object, of an unknown dialect
// or without events, and all else are kept as they are.
func Stored(d plugins.Dialect, contentType string, raw []byte) (stored []byte, storedType string) {
	assemble, ok := assemblers[d]
	if !ok {
		return raw, contentType
	}
	root := assemble(events(d, contentType, raw))
	if root == nil {
		return raw, contentType
	}
	return root.appendJSON(make([]byte, 0, len(raw)/4)), "application/json"
}

// events are those of a stream, none of another body.
func events(d plugins.Dialect, contentType string, raw []byte) []event {
	mediaType, _, _ := mime.ParseMediaType(contentType)
	switch mediaType {
	case "text/event-stream":
		return sse(string(raw))
	case "application/x-ndjson":
		return ndjson(string(raw))
	case "application/vnd.amazon.eventstream":
		return frames(raw)
	case "application/json":
		// Gemini without alt=sse streams the elements of an array.
		if d == plugins.GenerateContent && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")) {
			return array(string(raw))
		}
	}
	return nil
}
