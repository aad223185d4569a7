package transcript

import (
	"bytes"
	"iter"
	"mime"
	"slices"

	"github.com/weirhq/weir/plugins/streams"
)

// An Assembler makes the stored forms of bodies, and keeps its memory between them.
type Assembler struct {
	template template
	stored   []byte
}

// Stored returns the form in which a response body is stored, and its content type. raw has no
// Content-Encoding. A stream becomes the object that the call would have returned without streaming. The
// object also has fields that Weir does not know; it ends where the stream broke off.
//
// All other bodies stay unchanged, as do streams without events or in an unknown format: then stored is raw.
// Otherwise stored is valid until the next call.
func (a *Assembler) Stored(f *Format, contentType string, raw []byte) (stored []byte, storedType string) {
	events := a.events(f, contentType, raw)
	if events == nil {
		return raw, contentType
	}
	root := f.object(events)
	a.template.Reset()
	if root == nil {
		return raw, contentType
	}
	a.stored = root.appendJSON(a.stored[:0])
	return a.stored, "application/json"
}

// Stored is what a new Assembler returns.
func (f *Format) Stored(contentType string, raw []byte) (stored []byte, storedType string) {
	return new(Assembler).Stored(f, contentType, raw)
}

// events returns the events of a stream, or nil if the body is no stream of this format.
func (a *Assembler) events(f *Format, contentType string, raw []byte) iter.Seq[event] {
	if !f.streams() {
		return nil
	}
	mediaType, _, _ := mime.ParseMediaType(contentType)
	kind, _ := streams.KindOf(raw) // because some content types are wrong
	switch {
	case mediaType == "text/event-stream" && kind != streams.Lines, kind == streams.Events:
		if f.last != nil {
			if last, ok := f.last(raw); ok {
				return slices.Values([]event{last})
			}
		}
		return a.template.objects(streams.SSEData(raw))
	case streams.IsNDJSON(mediaType), kind == streams.Lines:
		return a.template.objects(bytes.Lines(raw))
	case mediaType == streams.FramesType:
		return frames(raw)
	case mediaType == "application/json" && f.array && bytes.HasPrefix(bytes.TrimSpace(raw), []byte("[")):
		// Gemini without alt=sse streams the elements of an array.
		return a.template.objects(array(raw))
	}
	return nil
}
