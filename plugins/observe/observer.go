package observe

import (
	"bytes"
	"net/http"
	"strings"
	"sync"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
)

// observer is the one plugins.Observer: a framing finds events, the scanner reads
// their JSON by the dialect's table, and value gathers what they say.
type observer struct {
	seen     plugins.ResponseInfo
	provider string
	dialect  *dialect
	framing  streams.Framing
	media    string // the media type that the response declares
	values   int    // top-level values of the body that have ended

	scan      scanner
	hasData   bool // data of the event under way has come
	repeated  bool // the data repeats the template, and was not scanned
	report    report
	changed   bool          // report is newer than seen.Usage
	last      report        // Google's report before the one under way, while reporting
	reporting bool          // a report of Google's is being read
	phase     plugins.Phase // becomes that of seen when the event ends
	failed    bool          // the event says that it is an error
	other     bool          // the choice under way is not the first
	earlier   struct {      // values from before the choice under way
		finish string
		phase  plugins.Phase
	}
	cause rank   // the rank of seen.ErrorType
	chunk []byte // decoded bytes of an InvokeModel frame

	// statement is the body, or the event under way, as long as the answer says nothing that the dialect
	// knows. It has at most MaxStatement of length bytes.
	statement []byte
	length    int
	isEnd     bool // the event under way is [DONE]

	detail detailCount
	beside beside
}

// New reads a response of dialect d with that header. The framing comes from its
// Content-Type, or from the first byte where that contradicts it. The dialect of an
// Unknown response is recognized by the shape of its events. The provider, if
// known, settles what the dialect leaves open: the meaning of fields that some
// providers add.
func New(d plugins.Dialect, provider string, header http.Header) plugins.Observer {
	x := observers.Get().(*observer)
	x.provider, x.media, x.scan.to = provider, mediaType(header.Get("Content-Type")), x
	x.adopt(d)
	x.scan.reset()
	for key, f := range x.dialect.Headers {
		if v := header[key]; len(v) > 0 {
			x.header(f, v[0])
		}
	}
	return x
}

// Read returns what a response says that is there as a whole, in one or more pieces.
func Read(d plugins.Dialect, provider string, header http.Header, body ...[]byte) *plugins.ResponseInfo {
	x := New(d, provider, header)
	for _, piece := range body {
		x.Write(piece)
	}
	x.Close()
	return x.Info()
}

var observers = sync.Pool{New: func() any { return new(observer) }}

// Free implements plugins.Observer.
func (x *observer) Free() {
	*x = observer{scan: x.scan.emptied(), statement: x.statement[:0]}
	observers.Put(x)
}

// header takes what a header says. AWS appends an address to its types of errors.
func (x *observer) header(f Field, s string) {
	s, _, _ = strings.Cut(s, ":")
	v := value{kind: text, bytes: truncate([]byte(s))}
	if f >= firstCount {
		v.kind = number
	}
	x.value(f, v)
	x.refresh()
}

func (x *observer) adopt(d plugins.Dialect) {
	x.seen.Dialect = d
	x.dialect = lookup(d)
	x.scan.root = x.dialect.responseOf(x.provider)
}

func (x *observer) Info() *plugins.ResponseInfo { return &x.seen }

func (x *observer) Write(p []byte) {
	if x.framing == nil {
		for len(p) > 0 && (space[p[0]] || strings.IndexByte(streams.ByteOrderMark, p[0]) >= 0) {
			p = p[1:]
		}
		if len(p) == 0 {
			return
		}
		x.framing = x.framingOf(p[0])
	}
	x.framing.Write(p)
	x.refresh()
}

func (x *observer) Close() {
	if x.framing != nil {
		x.framing.Close()
		x.settle()
		x.readStatement()
		x.refresh()
	}
}

func (x *observer) refresh() {
	if x.changed {
		x.seen.Usage = x.report.usage()
		if u := &x.seen.Usage; x.dialect.NoOutput && u.Input.Valid {
			u.Output = u.Output.Or(plugins.Known(0))
		}
		if u := &x.seen.Usage; x.dialect.AudioOutput {
			u.OutputAudio = u.Output
		}
		x.bill()
		x.changed = false
	}
}

// framingOf returns the framing of a body whose first byte is c, after white space and a
// byte order mark. Content types are wrong at times: some providers declare an error in JSON
// as a stream, or a stream as JSON.
func (x *observer) framingOf(c byte) streams.Framing {
	lines := streams.IsNDJSON(x.media)
	isJSON := strings.HasSuffix(x.media, "json") && !lines
	switch {
	case c == 0 || x.media == streams.FramesType && c != '{':
		// The length of a frame, below 16 MiB, begins with a zero.
		x.seen.Stream = true
		return &streams.Frames{To: x.frame}
	case c != '{' && c != '[' && (!isJSON || strings.IndexByte("deir:<", c) >= 0):
		// data, event, id, retry, error or a comment; a page has no events
		return &streams.SSE{To: x}
	case lines, x.dialect.Lines && !isJSON:
		return &streams.NDJSON{To: x}
	}
	x.scan.root = x.dialect.wholeOf(x.provider)
	x.scan.reset()
	return &document{x}
}

// document is the framing of a body that is one JSON value, or several: some providers declare
// newline-delimited JSON as JSON.
type document struct{ *observer }

// Write implements streams.Framing. A value that a line feed follows may be the first of several.
func (d *document) Write(p []byte) {
	d.scan.write(p)
	d.hold(p)
	if d.values == 1 && !bytes.HasSuffix(p, []byte("\n")) {
		d.seen.Phase = plugins.Ended
	}
}

// Close implements streams.Framing.
func (d *document) Close() {
	d.scan.finish()
	if d.values == 1 {
		d.seen.Phase = plugins.Ended
	}
}

// Data implements streams.Sink.
func (x *observer) Data(p []byte) {
	t := &x.scan.template
	if !x.hasData && t.Fits(p) {
		x.hasData, x.repeated = true, true
		return
	}
	t.learn(!x.hasData)
	if !x.hasData {
		if x.isEnd = bytes.HasPrefix(p, []byte("[DONE]")); !x.isEnd {
			x.statement, x.length = x.statement[:0], 0
		}
	}
	x.hasData, x.repeated = true, false
	x.scan.write(p)
	if !x.isEnd {
		x.hold(p)
	}
	if x.seen.Content && x.scan.between() && t.learning {
		t.Learn(p) // unless it has told something
	}
}

// Dispatch implements streams.Sink.
func (x *observer) Dispatch(name []byte) {
	if _, ok := x.framing.(*streams.SSE); ok && x.hasData {
		x.seen.Stream = true
	}
	failed := string(name) == "error"
	if x.repeated && !failed {
		x.hasData, x.repeated = false, false
		return
	}
	x.scan.finish()
	if failed {
		x.fail(anyError, Unnamed)
	}
	x.begin()
}

func (x *observer) begin() {
	x.settle()
	x.scan.reset()
	x.hasData, x.repeated = false, false
	x.phase, x.failed, x.other = plugins.Running, false, false
}

// endEvent takes over the phase that the event told. Not before its end: the usage may have
// followed.
func (x *observer) endEvent() {
	x.settle()
	x.seen.Phase = max(x.seen.Phase, x.phase)
	x.phase, x.failed, x.other = plugins.Running, false, false
}

func (x *observer) endDocument() {
	x.values++
	x.seen.Stream = x.seen.Stream || x.values > 1
}

// template is an event that changes nothing if it is read again. Its gaps tell nothing but
// that there is content.
type template struct {
	streams.Template[struct{}]
	// learning is true while the event that is read may become the template.
	learning bool
}

// maxGaps is more than the gaps of any event that repeats in streams.
const maxGaps = 12

// learn begins to read data, which may be an event's first.
func (t *template) learn(first bool) {
	t.Reset()
	t.learning = first
}

// gap notes one of the event under way.
func (t *template) gap(start, end int, isNumber bool) {
	if len(t.Gaps()) == maxGaps {
		t.learning = false
	}
	if t.learning {
		t.Gap(start, end, isNumber, struct{}{})
	}
}

// Unnamed is the type of an error that has neither a type nor a code.
const Unnamed = "error"

// rank orders the fields that may have the type of an error. The highest wins.
type rank uint8

const (
	noError rank = iota
	anyError
	numberedError
	namedError
	typedError
)

// failure takes what an error says of itself.
func (x *observer) failure(f Field, v value) {
	switch f {
	case Error:
		if v.kind == object || v.kind == text && len(v.bytes) > 0 {
			x.fail(anyError, Unnamed)
			x.explain(v)
		}
	case ErrorMessage:
		if v.kind == text && len(v.bytes) > 0 {
			x.fail(anyError, Unnamed)
			x.explain(v)
		}
	case ErrorText:
		x.explain(v)
	case objectName:
		if string(v.bytes) == "error" {
			x.failed = true
			x.fail(anyError, Unnamed)
		}
	case ErrorType:
		x.failAs(typedError, v)
	case ErrorCode:
		x.failAs(namedError, v)
	case ownErrorType:
		if x.failed {
			x.failAs(typedError, v)
		}
	case ownErrorCode:
		if x.failed {
			x.failAs(namedError, v)
		}
	case ownErrorText:
		if x.failed {
			x.explain(v)
		}
	}
}

// explain takes the message of the first error.
func (x *observer) explain(v value) {
	if v.kind == text && x.seen.ErrorMessage == "" {
		x.seen.ErrorMessage = string(v.bytes)
	}
}

// failAs takes the type or code of an error; a code may be a number.
func (x *observer) failAs(r rank, v value) {
	if v.kind == number {
		r = numberedError
	} else if v.kind != text {
		return
	}
	if name := plugins.ErrorName(string(v.bytes)); name != "" {
		x.fail(r, name)
	}
}

// fail keeps the best name of the first error.
func (x *observer) fail(r rank, name string) {
	if r > x.cause {
		x.cause, x.seen.ErrorType = r, name
	}
}

// MaxStatement is how long a body, or an event, may be that states an error in a shape of no dialect, in
// bytes.
const MaxStatement = 4 << 10

// hold keeps what has come for readStatement.
func (x *observer) hold(p []byte) {
	if x.isRead() {
		return
	}
	if x.length += len(p); x.length <= MaxStatement {
		x.statement = append(x.statement, p...)
	}
}

// isRead reports whether the answer says something that the dialect knows.
func (x *observer) isRead() bool {
	return x.seen.Content || x.seen.Finish != "" || x.seen.ErrorType != ""
}

// readStatement takes the error that an answer, or its last event, states in a shape of no dialect, if it
// is no response. Its type is unknown unless the error means a status.
func (x *observer) readStatement() {
	isAnswer := !x.dialect.finishes && (len(x.dialect.Object) == 0 || plugins.ValidJSON(x.statement) && IsResponse(x.dialect.Name, x.statement))
	if x.isRead() || x.length == 0 || x.length > MaxStatement || isAnswer {
		return
	}
	e := plugins.ErrorWithin(x.statement)
	if e == nil {
		return
	}
	name := e.Type
	if e.Status == http.StatusBadGateway {
		name = Unnamed
	}
	x.fail(anyError, name)
	x.seen.ErrorMessage = e.Message
}
