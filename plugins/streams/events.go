package streams

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
)

// Event is one event of a stream. Its bytes hold until the next one.
type Event struct {
	// Name is empty where the framing or the event has none.
	Name []byte
	// Data is without the newline at its end.
	Data []byte
}

// maxEvent is how long the data of an event may be: 64 MiB.
const maxEvent = 64 << 20

var errEventTooLong = errors.New("an event of the stream is over 64 MiB long")

// ReadSSE returns the events of a stream of Server-Sent Events that have data. An
// error is one of reading and comes last.
func ReadSSE(r io.Reader) iter.Seq2[Event, error] {
	return eventsOf(r, func(to Sink) Framing { return &SSE{To: to} })
}

// ByteOrderMark may stand before a stream.
const ByteOrderMark = "\xEF\xBB\xBF"

func eventsOf(r io.Reader, newFraming func(to Sink) Framing) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		y := &yielder{yield: yield}
		f := newFraming(y)
		begun := false
		err := read(r, func(p []byte) error {
			for !begun && len(p) > 0 {
				if begun = strings.IndexByte(ByteOrderMark, p[0]) < 0; !begun {
					p = p[1:]
				}
			}
			f.Write(p)
			switch {
			case y.stopped:
				return errStopped
			case len(y.buf) > maxEvent:
				return errEventTooLong
			}
			return nil
		})
		switch {
		case err == nil:
			f.Close()
		case !y.stopped:
			yield(Event{}, err)
		}
	}
}

// errStopped ends the reading because nobody wants more events.
var errStopped = errors.New("stopped")

// windows are the buffers of readers.
var windows = sync.Pool{New: func() any { return new([16 << 10]byte) }}

// read gives write all that r has, in pieces.
func read(r io.Reader, write func(p []byte) error) error {
	window := windows.Get().(*[16 << 10]byte)
	defer windows.Put(window)
	for {
		n, err := r.Read(window[:])
		if failed := write(window[:n]); failed != nil {
			return failed
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// yielder collects the data of each event.
type yielder struct {
	yield   func(Event, error) bool
	buf     []byte
	stopped bool
}

func (y *yielder) Data(p []byte) {
	if !y.stopped {
		y.buf = append(y.buf, p...)
	}
}

func (y *yielder) Dispatch(name []byte) {
	data := bytes.TrimSuffix(y.buf, []byte("\r"))
	if len(data) > 0 && !y.stopped {
		y.stopped = !y.yield(Event{Name: name, Data: data}, nil)
	}
	y.buf = y.buf[:0]
}

// SSEData returns the data of the Server-Sent Events in a whole body. They are parts
// of raw, unless an event has several lines of data.
func SSEData(raw []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		p := &parts{yield: yield}
		s := SSE{To: p}
		s.Write(bytes.TrimPrefix(raw, []byte(ByteOrderMark)))
		s.Close()
	}
}

// parts passes the data of events on without copying what is in one piece.
type parts struct {
	yield   func([]byte) bool
	data    []byte
	stopped bool
}

func (p *parts) Data(b []byte) {
	if p.data == nil {
		p.data = slices.Clip(b)
		return
	}
	p.data = append(p.data, b...)
}

func (p *parts) Dispatch([]byte) {
	if !p.stopped {
		p.stopped = !p.yield(p.data)
	}
	p.data = nil
}

// LastData returns the data line that ends a body of Server-Sent Events, or the one
// before [DONE]: nil if the body ends in something else.
func LastData(raw []byte) []byte {
	for {
		raw = bytes.TrimRight(raw, "\r\n")
		line := raw[bytes.LastIndexAny(raw, "\r\n")+1:]
		value, ok := bytes.CutPrefix(line, []byte("data:"))
		switch value = bytes.TrimSpace(value); {
		case !ok:
			return nil
		case string(value) != "[DONE]":
			return value
		}
		raw = raw[:len(raw)-len(line)]
	}
}
