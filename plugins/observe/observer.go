package observe

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/weirhq/weir/plugins"
)

// observer is the one plugins.Observer: a framing finds events, the scanner reads
// their JSON by the dialect's table, and value gathers what they say.
type observer struct {
	seen     plugins.ResponseInfo
	provider string
	dialect  *dialect
	framing  framing
	media    string // the media type that the response declares

	scan      scanner
	begun     bool // data of the event under way has come
	report    report
	changed   bool   // report is newer than seen.Usage
	last      report // Google's last one, while reporting
	reporting bool
	phase     plugins.Phase // of seen, once the event ends
	failed    bool          // the event says that it is an error
	other     bool          // the choice under way is not the first
	earlier   struct {      // what held before that choice
		finish string
		phase  plugins.Phase
	}
	cause rank // what seen.ErrorType is

	detail detailCount
}

// framing finds events in a body.
type framing interface {
	write(p []byte)
	close()
}

// New reads a response of dialect d with that header. The framing comes from its
// Content-Type, or from the first byte where that contradicts it. The dialect of an
// Unknown response is recognized by the shape of its events. The provider, if
// known, settles what the dialect leaves open: the meaning of fields that some
// providers add.
func New(d plugins.Dialect, provider string, header http.Header) plugins.Observer {
	x := &observer{provider: provider, media: mediaType(header.Get("Content-Type"))}
	x.scan.to = x
	x.adopt(d)
	x.scan.reset()
	for key, f := range x.dialect.Headers {
		if v := header[key]; len(v) > 0 {
			x.header(f, v[0])
		}
	}
	return x
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
		for len(p) > 0 && (space[p[0]] || strings.IndexByte(byteOrderMark, p[0]) >= 0) {
			p = p[1:]
		}
		if len(p) == 0 {
			return
		}
		x.framing = x.frame(p[0])
	}
	x.framing.write(p)
	x.refresh()
}

const byteOrderMark = "\xEF\xBB\xBF"

func (x *observer) Close() {
	if x.framing != nil {
		x.framing.close()
		x.settle()
		x.refresh()
	}
}

func (x *observer) refresh() {
	if x.changed {
		x.seen.Usage = x.report.usage()
		if u := &x.seen.Usage; x.dialect.Operation == "embeddings" && u.Input.Valid {
			u.Output = u.Output.Or(plugins.Known(0)) // there is none
		}
		x.changed = false
	}
}

// frame is the framing of a body that begins with c, white space and a byte
// order mark apart. Providers declare streams that are not: an error in JSON
// for a stream, a stream as JSON.
func (x *observer) frame(c byte) framing {
	lines := isLines(x.media)
	isJSON := strings.HasSuffix(x.media, "json") && !lines
	switch {
	case c == 0 || x.media == eventStreamMedia && c != '{':
		// The length of a frame, below 16 MiB, begins with a zero.
		return newEventStream(x)
	case c != '{' && c != '[' && (!isJSON || strings.IndexByte("deir:", c) >= 0):
		// data, event, id, retry, error and comments: no JSON value begins so.
		return &sse{to: x, errorField: true}
	case lines, x.dialect.Lines && !isJSON:
		return &ndjson{to: x}
	}
	return &document{x}
}

// document is the framing of a body that is one JSON value.
type document struct{ *observer }

func (d *document) write(p []byte) { d.scan.write(p) }
func (d *document) close()         { d.scan.finish() }

// data and dispatch take the events of a framing.
func (x *observer) data(p []byte) {
	t := &x.scan.template
	if !x.begun && t.fits(p) {
		x.begun = true
		return
	}
	t.learn(!x.begun)
	x.begun = true
	x.scan.write(p)
	if x.seen.Content && x.scan.between() {
		t.learned(p)
	}
}

func (x *observer) dispatch(name []byte) {
	x.scan.finish()
	if string(name) == "error" {
		x.fail(anyError, "error")
	}
	x.begin()
}

func (x *observer) begin() {
	x.settle()
	x.scan.reset()
	x.begun, x.phase, x.failed, x.other = false, plugins.Running, false, false
}

// endEvent lets count what the event said of the phase, now that all of it was
// read: what followed may have been the usage.
func (x *observer) endEvent() {
	x.settle()
	x.seen.Phase = max(x.seen.Phase, x.phase)
	x.phase, x.failed, x.other = plugins.Running, false, false
}

func (x *observer) endDocument() {
	if _, ok := x.framing.(*document); ok {
		x.seen.Phase = plugins.Ended
	}
}

func (x *observer) reach(p plugins.Phase) { x.phase = max(x.phase, p) }

// value takes what the scanner reads.
func (x *observer) value(f Field, v value) {
	if f.again() && v.kind != null {
		x.scan.template.learning = false
	}
	switch {
	case v.kind == null:
	case f >= firstCount:
		if n, ok := f.count(v); ok {
			x.report.set(f, n)
			x.changed = true
			x.seen.Content = x.seen.Content || f == Image
		}
	case f >= firstDetail:
		x.listed(f, v)
	case f >= firstError:
		x.failure(f, v)
	default:
		x.response(f, v)
	}
}

// response takes what is neither a count nor of an error.
func (x *observer) response(f Field, v value) {
	switch f {
	case Model:
		set(&x.seen.Model, v)
	case ResponseID:
		// Groq's Compound has another id in each chunk.
		if x.seen.ResponseID == "" {
			set(&x.seen.ResponseID, v)
		}
	case FinishReason:
		x.finish(v)
	case Choice:
		x.other = false
		x.earlier.finish, x.earlier.phase = x.seen.Finish, x.phase
	case ChoiceIndex:
		if n, ok := parseCount(v.bytes); ok && n > 0 { // it may come after the reason
			x.other = true
			x.seen.Finish, x.phase = x.earlier.finish, x.earlier.phase
		}
	case ServiceTier:
		set(&x.seen.ServiceTier, v)
	case Content:
		if v.kind == object || v.kind == text && len(v.bytes) > 0 {
			x.seen.Content = true
		}
	case OutputType:
		if bytes.HasSuffix(v.bytes, []byte("_call")) || bytes.HasSuffix(v.bytes, []byte("tool_use")) {
			x.seen.Content = true
		}
	case EventType:
		x.event(v.bytes)
	case sentinel:
		if string(v.bytes) == "DONE" {
			x.reach(plugins.Ended)
		}
	case Done:
		if v.kind == object || string(v.bytes) == "true" {
			x.reach(plugins.Ended)
		}
	case shape:
		x.shape(v)
	case Report:
		x.supersede()
	}
}

// set keeps the text of v, and allocates only for one that is new.
func set(s *string, v value) {
	if v.kind == text && len(v.bytes) > 0 && *s != string(v.bytes) {
		*s = string(v.bytes)
	}
}

// finish takes the finish reason of the first choice; of Responses the status,
// unless it says that there is more to come.
func (x *observer) finish(v value) {
	if v.kind != text || len(v.bytes) == 0 || v.index > 0 || x.other {
		return
	}
	switch string(v.bytes) {
	case "in_progress", "queued":
		return
	}
	set(&x.seen.Finish, v)
	x.reach(x.dialect.AfterFinish)
}

func (x *observer) event(name []byte) {
	if string(name) == "error" {
		x.failed = true
		x.fail(anyError, "error")
	}
	for _, last := range x.dialect.LastEvents {
		if last == string(name) {
			x.reach(plugins.Ended)
		}
	}
}
