package translate

import (
	"encoding/json"
	"io"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
)

// Options are what a host may decide about an Assembler.
type Options struct {
	// ID makes a fresh id that begins with prefix; random ones by default.
	ID func(prefix string) string
	// Now is the clock; time.Now by default.
	Now func() time.Time
	// Seal encrypts what a plugin gives as encrypted content, for
	// Request.Unseal to open; by default it passes as it is.
	Seal func(content string) string
	// Encoder writes the response; that of POST /v1/responses by default.
	Encoder Encoder
	// Items open the response: items of tools that the host ran before, which have no
	// id yet.
	Items []json.RawMessage
	// Provider is the vendor whose way of stating usage and cost is read. Default: the
	// one that the plugin names.
	Provider string
	// Limit bounds Size; 64 MiB by default.
	Limit int
	// Cut ends a response that has more bytes of content, as if the model had reached its
	// limit of output tokens. 0: no response is cut.
	Cut int
}

const (
	// maxSize is the size of a response unless Options say.
	maxSize = 64 << 20
	// itemSize is what an item or a part takes beside its content, in bytes: in memory, and
	// as JSON.
	itemSize = 2 << 10
)

// Assembler turns what a plugin reads into one legal response: a stream of events,
// or one object, which an Encoder writes. It owns ids, indices, what opens and
// closes, and the end; a plugin only says what the model said, in any order, and an
// empty string says nothing. Texts may end in half of a surrogate pair, see plugins.Text.
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
	request *Request
	opts    Options

	sink io.Writer // nil without streaming
	buf  []byte    // events for it
	err  error     // the first of sink

	id      string
	created int64
	seen    plugins.ResponseInfo
	echo    []byte // the keys of the response that never change
	reason  Reason
	failure *plugins.Error
	// truncated: the arguments of a call are cut off.
	truncated bool
	// clientStops are the stop sequences of the request, and stops those at which the Assembler ends the text.
	clientStops, stops []string
	// stopSequence is the one at which the text has ended, "" if it has not. Text, reasoning and calls are
	// refused after it. Annotations, notes and what hosted tools did are taken.
	stopSequence string
	extent

	items     []*Output // by output_index
	open      []*Output // calls in the order of their mention, or one item of another kind
	rounds    rounds
	opening   int // how many items open the response
	committed bool
	logprobs  struct { // of the text that comes next for key
		key int
		raw []byte
	}
	response json.RawMessage // once it ended
}

// extent is how long the response is, in bytes.
type extent struct {
	size   int // of the content
	beside int // what stands beside the content: items, parts, and names of tools
	cut    bool
}

// rounds are the calls of the model that answer one request: each but the last ended with
// calls of MCP tools.
type rounds struct {
	calling []*Output     // calls of MCP tools that have no result yet
	begins  int           // index of the first item of the round
	usage   plugins.Usage // of the rounds before
}

// NewAssembler makes the Assembler for one attempt at p. The sink takes the
// events, and is not used unless p.Stream.
func NewAssembler(p *Request, sink io.Writer, o Options) *Assembler {
	if o.ID == nil {
		o.ID = randomID
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Encoder == nil {
		o.Encoder = new(responses)
	}
	if o.Limit == 0 {
		o.Limit = maxSize
	}
	a := &Assembler{request: p, opts: o, id: o.ID("resp_"), created: o.Now().Unix(), clientStops: p.Stop()}
	a.stops = enforceable(a.clientStops)
	a.seen.Dialect = plugins.Responses
	if p.Stream {
		a.sink = sink
	}
	return a
}

// Request returns what is being answered.
func (a *Assembler) Request() *Request { return a.request }

// Start sets the model that answers, and the provider's id of the response; "" is
// unknown.
func (a *Assembler) Start(model, upstreamID string) {
	if model != "" {
		a.seen.Model = model
	}
	if upstreamID != "" {
		a.seen.ResponseID = upstreamID
	}
}

// ServiceTier sets the tier that served the request.
func (a *Assembler) ServiceTier(tier string) { a.seen.ServiceTier = tier }

// InferenceGeo sets where the model ran; "" is unknown.
func (a *Assembler) InferenceGeo(geography string) { a.seen.InferenceGeo = geography }

// Text adds to a message.
func (a *Assembler) Text(key int, s string) {
	if a.takesText(len(s)) {
		a.appendText(a.opened(MessageOutput, key), TextPart, s)
	}
}

// Refusal adds to a message's refusal.
func (a *Assembler) Refusal(key int, s string) {
	if a.takesText(len(s)) {
		o := a.opened(MessageOutput, key)
		o.Refused = o.Refused || s != ""
		a.appendText(o, RefusalPart, s)
	}
}

// Annotation adds an annotation, as a JSON object of the Responses API, to the message's open
// text. It is ignored if no text is open, or if it is about what came after a stop sequence.
func (a *Assembler) Annotation(key int, raw json.RawMessage) {
	o, p := a.openText(key)
	if p == nil {
		return
	}
	annotation := compact(raw, '{')
	if v := gjson.ParseBytes(annotation); v.Get("type").Str == "url_citation" && v.Get("url").Str == "" {
		return
	}
	if annotation != nil && a.takes(len(annotation)) {
		p.pendingAnnotations = append(p.pendingAnnotations, annotation)
		a.annotate(o, p)
		a.flush()
	}
}

// annotate adds the annotations that wait, unless the end of the text is not known.
func (a *Assembler) annotate(o *Output, p *OutputPart) {
	if p.tail != "" {
		return
	}
	for _, annotation := range p.pendingAnnotations {
		if a.stopSequence != "" {
			if annotation = annotationWithin(annotation, int64(p.Length)); annotation == nil {
				continue
			}
		}
		a.emit(Event{Type: Annotated, Output: o, Part: p, Annotation: annotation})
		p.annotations = appendElements(p.annotations, annotation)
		p.annotationCount++
	}
	p.pendingAnnotations = nil
}

// annotationWithin returns an annotation of a text that was cut to so many characters, nil if it is about
// what was cut off.
func annotationWithin(annotation json.RawMessage, length int64) json.RawMessage {
	start, end := gjson.GetBytes(annotation, "start_index"), gjson.GetBytes(annotation, "end_index")
	switch {
	case start.Exists() && start.Int() >= length:
		return nil
	case end.Int() > length:
		annotation, _ = sjson.SetBytes(annotation, "end_index", length) // an object, and a plain path
	}
	return annotation
}

// openText returns the open message of a key and its text. The text is nil if none is open.
func (a *Assembler) openText(key int) (*Output, *OutputPart) {
	o := a.find(key)
	if o == nil || o.Kind != MessageOutput || o.part().Kind != TextPart {
		return nil, nil
	}
	return o, o.part()
}

// Length is the length of the open text of a key, in characters, 0 if none is open. What waits for more of
// the text counts.
func (a *Assembler) Length(key int) int64 {
	if _, p := a.openText(key); p != nil {
		return int64(p.Length + utf8.RuneCountInString(p.tail))
	}
	return 0
}

// Logprobs adds the logprobs, as a JSON array of the Responses API, of the text
// that comes next for key.
func (a *Assembler) Logprobs(key int, raw json.RawMessage) {
	list := compact(raw, '[')
	if list == nil || !a.takesText(len(list)) {
		return
	}
	if _, p := a.openText(key); p == nil || p.tail == "" && p.half == "" || a.logprobs.key != key { // no text waits with its logprobs
		a.logprobs.raw = a.logprobs.raw[:0]
	}
	a.logprobs.key = key
	a.logprobs.raw = appendElements(a.logprobs.raw, list[1:len(list)-1])
}

// Summary adds to part i of a reasoning's summary. A part that another followed becomes a
// new part.
func (a *Assembler) Summary(key, i int, s string) {
	if !a.takesText(len(s)) {
		return
	}
	o := a.opened(ReasoningOutput, key)
	if p := o.part(); p != nil && p.Kind == SummaryPart && o.summary != i {
		a.addPart(o, SummaryPart)
	}
	o.summary = i
	a.appendText(o, SummaryPart, s)
}

// ReasoningText adds to raw reasoning.
func (a *Assembler) ReasoningText(key int, s string) {
	if a.takesText(len(s)) {
		a.appendText(a.opened(ReasoningOutput, key), ReasoningPart, s)
	}
}

// Seal sets the encrypted content of a reasoning: any text that the plugin needs when the
// client sends the item back. The host encrypts it. A reasoning may have nothing else.
func (a *Assembler) Seal(key int, content string) {
	if !a.takesText(len(content)) {
		return
	}
	if a.opts.Seal != nil {
		content = a.opts.Seal(content)
	}
	a.opened(ReasoningOutput, key).Sealed = content
	a.flush()
}

// Close ends the item of key, if it is open.
func (a *Assembler) Close(key int) {
	if o := a.find(key); o != nil && !a.done() {
		a.close(o, statusCompleted)
		a.flush()
	}
}

// Usage reports usage; a later report of a count wins.
func (a *Assembler) Usage(patch plugins.Usage) {
	if !a.cut {
		a.seen.Usage.Merge(patch)
	}
}

// Report reports all that the provider bills, as an observer read it.
func (a *Assembler) Report(seen *plugins.ResponseInfo) {
	a.Usage(seen.Usage)
	a.seen.Beside = seen.Beside
}

// Finish sets why the model stopped; the last call counts, unless a stop sequence has ended the text. Usage
// may follow.
func (a *Assembler) Finish(r Reason) {
	if !a.cut && a.stopSequence == "" {
		a.setReason(r)
	}
}

func (a *Assembler) setReason(r Reason) {
	switch {
	case r.Interrupts() && a.Info().Content:
		r.status = statusIncomplete
		fallthrough
	case r.status == statusIncomplete:
		a.seen.Finish = r.finish
	default:
		a.seen.Finish = r.status
	}
	a.reason, a.seen.Interrupted = r, r.word == own
	a.seen.Phase = plugins.Finished
}

// Fail fails the response, unless a stop sequence has ended the text. The first failure counts, and
// nothing is taken after it.
func (a *Assembler) Fail(e *plugins.Error) {
	if !a.done() && a.stopSequence == "" {
		a.failure = e
	}
}

// Failure returns why the response fails if it ends now: the error of Fail, the
// reason of Finish, or that Finish was not called. It is nil if the response does
// not fail.
func (a *Assembler) Failure() *plugins.Error {
	switch {
	case a.failure != nil:
		return a.failure
	case a.reason == ReasonNone:
		return plugins.Upstream("The upstream stream ended early.")
	case a.reason.status == statusFailed:
		return plugins.Upstream("The provider failed to generate the response.")
	case a.response == nil && slices.ContainsFunc(a.open, (*Output).nameless):
		return errNameless
	}
	return nil
}

// Committed reports whether events have been written to the sink. Until then
// another attempt may still answer.
func (a *Assembler) Committed() bool { return a.committed }

// Release writes the events that open the stream, which otherwise come with
// the first content.
func (a *Assembler) Release() {
	a.commit()
	a.flush()
}

// Ping writes what keeps the connection alive, once committed.
func (a *Assembler) Ping() {
	if a.committed && a.response == nil {
		a.emit(Event{Type: Idle})
		a.flush()
	}
}

// End ends the response and returns what is left to send: the terminal event
// with data: [DONE], or without streaming the object. Whatever came before, the
// stream is complete with it. Another End returns nil.
func (a *Assembler) End() []byte {
	if a.response != nil {
		return nil
	}
	if a.Failure() == nil {
		a.closeAll(a.reason.status)
		if a.truncated && a.reason.status == statusCompleted {
			a.setReason(ReasonMaxOutputTokens) // clients must not make the call
		}
		for _, o := range slices.Clone(a.rounds.calling) {
			a.MCPResult(o, "", "The response ended before the call was made.")
		}
	}
	a.failure = a.Failure()
	a.commit()
	a.flush()
	a.seen.Phase = plugins.Ended
	a.response = a.opts.Encoder.Object(a)
	a.open = nil
	if a.sink == nil {
		return a.response
	}
	a.emit(Event{Type: Ended})
	return a.buf
}

func (a *Assembler) status() string {
	if a.failure != nil {
		return statusFailed
	}
	return a.reason.status
}

// Response is the whole object, after End.
func (a *Assembler) Response() json.RawMessage { return a.response }

// Outputs are the items so far. Callers must not change them.
func (a *Assembler) Outputs() []*Output { return a.items }

// StopReason is what Finish was last called with.
func (a *Assembler) StopReason() Reason { return a.reason }

// ID is the id of the response, which begins with "resp_".
func (a *Assembler) ID() string { return a.id }

// Created is when the response began, in seconds since 1970.
func (a *Assembler) Created() int64 { return a.created }

// Info returns what is known so far of the upstream response. Callers must not change it.
func (a *Assembler) Info() *plugins.ResponseInfo {
	a.seen.Content = len(a.items) > a.opening
	if a.failure != nil {
		a.seen.ErrorType, a.seen.ErrorMessage = a.failure.ReportedType(), a.failure.Message
	}
	return &a.seen
}

// Err is the first error of the sink.
func (a *Assembler) Err() error { return a.err }

// Cut reports whether the response was cut: what follows of it is ignored.
func (a *Assembler) Cut() bool { return a.cut }

func (a *Assembler) done() bool {
	return a.failure != nil || a.response != nil || a.cut
}

// takesText is takes for text of the model. Nothing is taken after a stop sequence.
func (a *Assembler) takesText(n int) bool { return a.stopSequence == "" && a.takes(n) }

// takes counts n bytes of content. It returns false if they must not be added.
func (a *Assembler) takes(n int) bool {
	if n == 0 || a.done() {
		return false
	}
	switch a.size += n; {
	case a.opts.Cut > 0 && a.size > a.opts.Cut:
		a.size -= n
		a.Finish(ReasonMaxOutputTokens)
		a.cut = true
		return false
	case !a.fits():
		return false
	}
	return true
}

// Size is how long the response is so far, in bytes.
func (a *Assembler) Size() int { return a.size + a.beside }

// grow counts n bytes beside the content.
func (a *Assembler) grow(n int) {
	a.beside += n
	a.fits()
}

// fits fails a response that is too long.
func (a *Assembler) fits() bool {
	if a.Size() <= a.opts.Limit {
		return true
	}
	a.Fail(plugins.Upstream("The response is over %d bytes long.", a.opts.Limit))
	return false
}

// appendText adds s to the item's last part if that has the kind, or else to a new part.
func (a *Assembler) appendText(o *Output, kind PartKind, s string) {
	p := o.part()
	if p == nil || p.Kind != kind {
		p = a.addPart(o, kind)
	}
	if s, p.half = plugins.JoinSurrogates(p.half + s); kind == TextPart {
		s = a.untilStop(p, s)
	}
	a.write(o, p, s)
}

// write adds s to a part of an item, and to the stream, with the annotations that wait for it.
func (a *Assembler) write(o *Output, p *OutputPart, s string) {
	if s != "" {
		from := len(p.Text)
		p.Text = plugins.AppendEscaped(p.Text, s)
		p.Length += utf8.RuneCountInString(s)
		var logprobs []byte
		if p.Kind == TextPart && o.key == a.logprobs.key && len(a.logprobs.raw) > 0 {
			logprobs = a.logprobs.raw
			p.logprobs = appendElements(p.logprobs, logprobs)
			a.logprobs.raw = logprobs[:0]
		}
		a.emit(Event{Type: TextAdded, Output: o, Part: p, Text: p.Text[from:], Logprobs: logprobs})
	}
	a.annotate(o, p)
	a.flush()
}

// find returns the open item of a key, or nil.
func (a *Assembler) find(key int) *Output {
	for _, o := range a.open {
		if o.key == key {
			return o
		}
	}
	return nil
}

// opened returns the open item of a kind and key, and opens one if there is none.
func (a *Assembler) opened(kind OutputKind, key int) *Output {
	if o := a.find(key); o != nil && o.Kind == kind {
		return o
	}
	a.closeAll(statusCompleted)
	o := &Output{Kind: kind, key: key}
	a.open = append(a.open, o)
	a.announce(o)
	return o
}
