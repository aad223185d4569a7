package observe

import (
	"bytes"
	"errors"
	"io"
	"iter"
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

// SSE are the events of an event stream (HTML, section 9.2.6): comments are
// left out, any line ending counts, and the last event may lack its blank line.
// An error is one of reading and comes last.
func SSE(r io.Reader) iter.Seq2[Event, error] {
	return eventsOf(r, func(to stream) framing { return &sse{to: to} })
}

// NDJSON are the lines of newline-delimited JSON that are not empty, as events
// without a name. An error is one of reading and comes last.
func NDJSON(r io.Reader) iter.Seq2[Event, error] {
	return eventsOf(r, func(to stream) framing { return &ndjson{to: to} })
}

// windows are what readers read into.
var windows = sync.Pool{New: func() any { return new([16 << 10]byte) }}

func eventsOf(r io.Reader, newFraming func(to stream) framing) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		y := &yielder{yield: yield}
		f := newFraming(y)
		window := windows.Get().(*[16 << 10]byte)
		defer windows.Put(window)
		buf := window[:]
		begun := false
		for !y.stopped {
			n, err := r.Read(buf)
			p := buf[:n]
			for !begun && len(p) > 0 {
				if begun = strings.IndexByte(byteOrderMark, p[0]) < 0; !begun {
					p = p[1:]
				}
			}
			f.write(p)
			switch {
			case err == nil && len(y.buf) > maxEvent:
				err = errEventTooLong
			case err == io.EOF:
				f.close()
				return
			}
			if err != nil {
				if !y.stopped {
					yield(Event{}, err)
				}
				return
			}
		}
	}
}

// yielder collects the data of each event.
type yielder struct {
	yield   func(Event, error) bool
	buf     []byte
	stopped bool
}

func (y *yielder) data(p []byte) {
	if !y.stopped {
		y.buf = append(y.buf, p...)
	}
}

func (y *yielder) dispatch(name []byte) {
	data := bytes.TrimSuffix(y.buf, []byte("\r"))
	if len(data) > 0 && !y.stopped {
		y.stopped = !y.yield(Event{Name: name, Data: data}, nil)
	}
	y.buf = y.buf[:0]
}
