package plugins

import (
	"encoding/json"
	"io"
	"time"
)

// Options are what a host may decide about an Assembler.
type Options struct {
	// ID makes a fresh id that begins with prefix; random ones by default.
	ID func(prefix string) string
	// Now is the clock; time.Now by default.
	Now func() time.Time
	// Limit bounds the content of a response, in bytes; 64 MiB by default.
	Limit int
}

// Assembler turns what a plugin reads into one legal response of the Responses
// API: a stream of events, or one object. It owns ids, indices, sequence
// numbers, what opens and closes, and the terminal event; a plugin only says
// what the model said, in any order, and an empty string says nothing.
//
// A key names an item as long as it is open; a plugin chooses one for each
// block, index or call of its provider. Items open with their first content.
// Calls stay open together; any other item closes all when it opens. What comes
// for the key of a closed item begins a new one.
//
// Every Write to the sink is of whole events. An Assembler is not safe for
// concurrent use: a host that has to write while Decode waits for the provider
// does so in the Read of the body that it hands to Decode.
type Assembler struct {
	prompt *Prompt
	sink   io.Writer
}

// NewAssembler makes the Assembler for one attempt at p. The sink takes the
// events, and is not used unless p.Stream.
func NewAssembler(p *Prompt, sink io.Writer, o Options) *Assembler {
	return &Assembler{prompt: p, sink: sink}
}

// Prompt is what is being answered.
func (a *Assembler) Prompt() *Prompt { return a.prompt }

// Start tells the model that answers, and the provider's id of the response;
// "" is unknown.
func (a *Assembler) Start(model, upstreamID string) {}

// ServiceTier tells the tier that served.
func (a *Assembler) ServiceTier(tier string) {}

// Text adds to a message.
func (a *Assembler) Text(key int, s string) {}

// Refusal adds to a message's refusal.
func (a *Assembler) Refusal(key int, s string) {}

// Annotation adds an annotation, as a JSON object of the Responses API, to the
// message's text.
func (a *Assembler) Annotation(key int, raw json.RawMessage) {}

// Logprobs adds the logprobs, as a JSON array of the Responses API, of the text
// that comes next.
func (a *Assembler) Logprobs(key int, raw json.RawMessage) {}

// Summary adds to the part i of a reasoning's summary.
func (a *Assembler) Summary(key, i int, s string) {}

// ReasoningText adds to raw reasoning.
func (a *Assembler) ReasoningText(key int, s string) {}

// Seal sets the encrypted content of a reasoning, which is an item even if
// that is all it has.
func (a *Assembler) Seal(key int, encrypted string) {}

// Call begins the call of a tool by its flat name, which decides whether it is
// of a function or a custom tool. Repetitions are fine: another id begins
// another call, an id of "" means the same one, and until its arguments begin,
// a name that differs continues the one before. A call without an id gets one.
func (a *Assembler) Call(key int, id, name string) {}

// Args adds to the arguments of a call. Those of a custom tool are the object
// {"input": "..."}, of which the client gets the input.
func (a *Assembler) Args(key int, s string) {}

// CustomInput adds to the free-form input of the call of a custom tool.
func (a *Assembler) CustomInput(key int, s string) {}

// Image adds a generated image, given in base64.
func (a *Assembler) Image(mediaType, b64 string) {}

// Item adds a whole item as the Responses API has it, such as the
// web_search_call of a provider that speaks Responses.
func (a *Assembler) Item(raw json.RawMessage) {}

// Close ends the item of key, if it is open.
func (a *Assembler) Close(key int) {}

// Usage reports usage; a later report of a count wins.
func (a *Assembler) Usage(patch Usage) {}

// Finish tells why the model stopped; the last word counts. Usage may follow.
func (a *Assembler) Finish(r Reason) {}

// Fail fails the response. The first failure counts, and nothing is taken
// after it.
func (a *Assembler) Fail(e *Error) {}

// Failure is why the response fails if it ends now: what Fail was told, or that
// Finish has not been called; else nil.
func (a *Assembler) Failure() *Error { return nil }

// Committed reports whether events have been written to the sink. Until then
// another attempt may still answer.
func (a *Assembler) Committed() bool { return false }

// Release writes the events that open the stream, which otherwise come with
// the first content.
func (a *Assembler) Release() {}

// Ping writes a comment that keeps the connection alive, once committed.
func (a *Assembler) Ping() {}

// End ends the response and returns what is left to send: the terminal event
// with data: [DONE], or without streaming the object. Whatever came before, the
// stream is complete with it.
func (a *Assembler) End() []byte { return nil }

// Response is the whole object, after End.
func (a *Assembler) Response() json.RawMessage { return nil }

// Extraction is what has been learned so far of the upstream response.
func (a *Assembler) Extraction() *Extraction { return nil }

// Err is the first error of the sink.
func (a *Assembler) Err() error { return nil }
