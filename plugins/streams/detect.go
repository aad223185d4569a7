package streams

import (
	"bytes"
	"io"
	"iter"
	"strings"

	"github.com/tidwall/gjson"
)

// Kind is what a body is.
type Kind uint8

const (
	// Document: one JSON value, or nothing that Weir reads.
	Document Kind = iota
	// Events: server-sent events.
	Events
	// Lines: newline-delimited JSON.
	Lines
	// Binary: the frames of AWS.
	Binary
)

// Detect reads the beginning of a body, at most a window, and returns what the body is and a reader of
// all of it. The first line of newline-delimited JSON is shorter than a window. Content types are wrong at times: ollama.com sends lines as application/json, and there are
// providers that declare a stream as text, an error as a stream, or nothing at all.
func Detect(body io.Reader) (Kind, io.Reader) {
	r := &resumedReader{body: body, window: windows.Get().(*[16 << 10]byte)}
	for {
		kind, certain := KindOf(r.window[:r.size])
		if certain || r.size == len(r.window) || r.err != nil {
			return kind, r
		}
		var n int
		n, r.err = body.Read(r.window[r.size:])
		r.size += n
	}
}

// resumedReader is the reader of a body whose beginning has been read.
type resumedReader struct {
	body       io.Reader
	err        error           // of body
	window     *[16 << 10]byte // the beginning, nil once it is read again
	read, size int             // how much of window is read again, of how much there is
}

// Read implements io.Reader.
func (r *resumedReader) Read(p []byte) (n int, err error) {
	switch {
	case r.window != nil:
		n = copy(p, r.window[r.read:r.size])
		if r.read += n; r.read == r.size {
			windows.Put(r.window)
			r.window, err = nil, r.err
		}
		return n, err
	case r.err != nil:
		return 0, r.err
	}
	return r.body.Read(p)
}

// fields are those with which an event of a stream may begin. A comment has none.
var fields = [...]string{"data", "event", "id", "retry", "error", ""}

// blank is the white space of JSON.
const blank = " \t\r\n"

// KindOf returns the kind of a body that begins so. What follows may still change it unless it is
// certain.
func KindOf(body []byte) (kind Kind, certain bool) {
	for len(body) > 0 && strings.IndexByte(blank+ByteOrderMark, body[0]) >= 0 {
		body = body[1:]
	}
	if len(body) == 0 {
		return Document, false
	}
	switch body[0] {
	case 0: // the length of a frame, below 16 MiB, begins with a zero
		return Binary, true
	case '{':
		line, rest, ended := bytes.Cut(body, newline)
		rest = bytes.TrimLeft(rest, blank)
		switch {
		case !ended, len(rest) == 0 && line[len(line)-1] != '{':
			return Document, false
		case len(rest) > 0 && rest[0] == '{' && gjson.ValidBytes(line):
			return Lines, true
		}
		return Document, true
	}
	for _, field := range fields {
		switch name := string(body[:min(len(body), len(field)+1)]); {
		case name == field+":":
			return Events, true
		case strings.HasPrefix(field+":", name):
			return Document, false
		}
	}
	return Document, true
}

// ReadNDJSON returns the lines of newline-delimited JSON that are not empty, as events. An error is
// one of reading and comes last.
func ReadNDJSON(r io.Reader) iter.Seq2[Event, error] {
	return eventsOf(r, func(to Sink) Framing { return &NDJSON{To: to} })
}

// AsEvents returns newline-delimited JSON as server-sent events, one for each line.
func AsEvents(lines io.Reader) io.Reader { return &eventWriter{lines: lines} }

// eventWriter writes server-sent events while it reads lines.
type eventWriter struct {
	lines  io.Reader
	amid   bool   // a line
	events []byte // that nobody has read yet
	err    error  // of lines
}

// Read implements io.Reader.
func (w *eventWriter) Read(p []byte) (int, error) {
	window := windows.Get().(*[16 << 10]byte)
	defer windows.Put(window)
	for len(w.events) == 0 {
		if w.err != nil {
			return 0, w.err
		}
		var n int
		n, w.err = w.lines.Read(window[:])
		w.add(window[:n])
	}
	n := copy(p, w.events)
	w.events = w.events[:copy(w.events, w.events[n:])]
	return n, nil
}

func (w *eventWriter) add(b []byte) {
	for len(b) > 0 {
		line, rest, ended := bytes.Cut(b, newline)
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) > 0 && !w.amid {
			w.events, w.amid = append(w.events, "data: "...), true
		}
		w.events = append(w.events, line...)
		if ended && w.amid {
			w.events, w.amid = append(w.events, "\n\n"...), false
		}
		b = rest
	}
}
