// Package cut ends a stream where the money for it ends: as if the model had reached its limit
// of output, in the way of the stream's dialect.
package cut

import (
	"io"
	"math"
	"mime"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/streamusage"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/streams"
)

// dialect ends the streams of a dialect.
type dialect interface {
	// read takes an event that the client gets, or that would be too much. It returns how
	// many bytes of the event the model has written.
	read(e gjson.Result) (written int64)
	// keep remembers what the end needs of an event that the client gets.
	keep(e gjson.Result)
	// size is how many bytes are kept.
	size() int
	// end appends the events that end the stream before an event that is too much.
	end(b []byte, unsent gjson.Result) []byte
}

// newDialect is nil for a dialect whose streams cannot be cut.
func newDialect(d plugins.Dialect) dialect {
	switch d {
	case plugins.Chat, plugins.Completions:
		return &chat{}
	case plugins.Messages:
		return &messages{}
	case plugins.Responses:
		return &responses{}
	case plugins.GenerateContent:
		return &gemini{}
	}
	return nil
}

// Possible reports whether streams of a dialect can be cut.
func Possible(d plugins.Dialect) bool { return newDialect(d) != nil }

// stream passes the server-sent events of a stream until the model has written too much.
type stream struct {
	dialect
	left     int64  // bytes that the model may still write
	buffered []byte // an event whose end has not come
	over     bool   // the stream was cut
}

const (
	// maxEvent bounds an event in bytes. A stream ends before an event that is longer.
	maxEvent = 16 << 20
	// maxKept bounds what is kept for the end, in bytes. A stream ends before an event that
	// would be kept beside.
	maxKept = 16 << 20
	// choiceSize is what an open choice counts, in bytes.
	choiceSize = 4 << 10
)

// pass appends to b the events that p completes, up to the one that is too much, and then the
// end of the stream.
func (s *stream) pass(b, p []byte) []byte {
	if s.over {
		return b
	}
	searched := max(0, len(s.buffered)-len("\r\n\r\n")) // no event ends before
	s.buffered = append(s.buffered, p...)
	rest := s.buffered
	for {
		n := streamusage.EventLen(rest[searched:])
		if n == 0 {
			break
		}
		n, searched = n+searched, 0
		if e, fits := s.take(rest[:n]); !fits {
			b = s.end(b, e)
			s.buffered, s.over = nil, true
			return b
		}
		b, rest = append(b, rest[:n]...), rest[n:]
	}
	if len(rest) > maxEvent {
		s.buffered, s.over = nil, true
		return s.end(b, gjson.Result{})
	}
	s.buffered = append(s.buffered[:0], rest...)
	return b
}

// take returns an event, and whether the client gets the event.
func (s *stream) take(event []byte) (e gjson.Result, fits bool) {
	data := streams.LastData(event)
	if !plugins.ValidJSON(data) { // a comment, or [DONE]
		return e, true
	}
	e = gjson.ParseBytes(data)
	if s.left -= s.read(e); s.left < 0 || s.size()+len(data) > maxKept {
		return e, false
	}
	s.keep(e)
	return e, true
}

// Reader reads a stream up to where it is cut.
type Reader struct {
	io.ReadCloser
	stream
	ready []byte
	err   error
}

// NewReader cuts a stream of a dialect for which Possible is true, once the model has
// written more than limit bytes.
func NewReader(body io.ReadCloser, d plugins.Dialect, limit int64) *Reader {
	return &Reader{ReadCloser: body, stream: stream{dialect: newDialect(d), left: limit}}
}

// Over reports whether the stream was cut.
func (r *Reader) Over() bool { return r.over }

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (int, error) {
	for len(r.ready) == 0 && r.err == nil {
		var n int
		n, r.err = r.ReadCloser.Read(p)
		r.ready = r.pass(r.ready[:0], p[:n])
		switch {
		case r.over:
			r.err = io.EOF
		case r.err != nil: // what has come of the last event
			r.ready = append(r.ready, r.buffered...)
		}
	}
	n := copy(p, r.ready)
	if r.ready = r.ready[n:]; len(r.ready) > 0 {
		return n, nil
	}
	return n, r.err
}

// Writer passes a stream on up to where it is cut.
type Writer struct {
	http.ResponseWriter
	stream
	active bool
	stop   func()
}

// NewWriter cuts what is written to w like NewReader. Then it calls stop, and writes nothing
// any more. Close must follow the stream.
func NewWriter(w http.ResponseWriter, d plugins.Dialect, limit int64, stop func()) *Writer {
	return &Writer{ResponseWriter: w, stream: stream{dialect: newDialect(d), left: limit}, stop: stop}
}

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Lift lets the rest of the stream pass, because nobody is charged for it.
func (w *Writer) Lift() { w.left = math.MaxInt64 }

// Over reports whether the stream was cut.
func (w *Writer) Over() bool { return w.over }

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(status int) {
	mediaType, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	if w.active = status == http.StatusOK && mediaType == "text/event-stream"; w.active { // else the provider has not streamed
		w.Header().Del("Content-Length")
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(p []byte) (int, error) {
	if !w.active {
		return w.ResponseWriter.Write(p)
	}
	if passed := w.pass(nil, p); len(passed) > 0 {
		if _, err := w.ResponseWriter.Write(passed); err != nil {
			return 0, err
		}
	}
	if w.over {
		_ = http.NewResponseController(w.ResponseWriter).Flush()
		w.stop()
	}
	return len(p), nil
}

// Close passes on what is held at the end of the stream.
func (w *Writer) Close() {
	if len(w.buffered) > 0 {
		_, _ = w.ResponseWriter.Write(w.buffered) // the client may be gone
		w.buffered = nil
	}
}
