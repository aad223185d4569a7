package translate

import "encoding/json"

// Encoder writes a response in the form of one API: POST /v1/responses, or another
// in which a client called. It belongs to one Assembler.
type Encoder interface {
	// Append appends the event to a stream of the API. Some events add nothing.
	Append(b []byte, a *Assembler, e Event) []byte
	// Object returns the response as one object, once it has ended.
	Object(a *Assembler) json.RawMessage
}

// Event is a step of a response that is streamed. Items open one after the other,
// calls may stay open together, and an item has one open part at most.
type Event struct {
	Type EventType
	// Output is the item that the event is about, nil for Began, Idle and Ended.
	Output *Output
	// Part is the part that PartOpened, TextAdded, Annotated and PartClosed are about.
	Part *OutputPart
	// Text is what TextAdded adds: the inside of a JSON string.
	Text []byte
	// Logprobs are those of Text, as elements of a JSON array.
	Logprobs []byte
	// Annotation is the annotation of Annotated, as a JSON object of the Responses API.
	Annotation []byte
}

// EventType is what an event says.
type EventType uint8

const (
	// Began is the first event.
	Began EventType = iota
	// ItemOpened: an item begins. An item of HostedOutput has its JSON, and ends at once.
	ItemOpened
	// PartOpened: a part of an item begins.
	PartOpened
	// TextAdded: a part goes on.
	TextAdded
	// Annotated: a text has an annotation.
	Annotated
	// PartClosed: a part is whole.
	PartClosed
	// ItemClosed: an item is whole, and has its JSON.
	ItemClosed
	// Idle: the connection needs to be kept alive.
	Idle
	// Ended is the last event. Assembler.Failure says if the response failed.
	Ended
)

func (a *Assembler) emit(e Event) {
	if a.sink != nil {
		a.buf = a.opts.Encoder.Append(a.buf, a, e)
	}
}

func (a *Assembler) flush() {
	if len(a.buf) == 0 {
		return
	}
	if a.err == nil {
		_, a.err = a.sink.Write(a.buf)
	}
	a.buf = a.buf[:0]
}
