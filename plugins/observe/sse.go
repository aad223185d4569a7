package observe

import (
	"bytes"
)

// stream takes the data of the events that a framing finds.
type stream interface {
	data(p []byte)
	// dispatch ends an event; its name is "" where the framing has none.
	dispatch(name []byte)
}

// sse splits an event stream as the WHATWG specifies it (HTML, section 9.2.6),
// without its byte order mark: the data passes on as it comes. The last event
// counts without its blank line, which many providers leave out.
type sse struct {
	to    stream
	state lineState
	space bool // a space that comes now belongs to the colon before it
	cr    bool // a line feed that comes now belongs to the carriage return before it
	lines int  // data lines of the event

	name  [len("event") + 1]byte // of the field: a longer one is none that counts
	n     int
	event []byte

	// errorField is true where a line "error: {...}" is the data of an event named
	// "error". The specification has no such field, and some servers send it.
	errorField bool
}

type lineState uint8

const (
	inFieldName lineState = iota
	inData
	inEvent
	inOther
)

var newline = []byte{'\n'}

// maxEventName is how much is kept of an event's name, in bytes.
const maxEventName = 64

func (s *sse) write(p []byte) {
	lf := -1 // the next line feed of p, unless it lies behind
	for len(p) > 0 {
		if s.cr {
			s.cr = false
			if p[0] == '\n' {
				p, lf = p[1:], lf-1
				continue
			}
		}
		if lf < 0 {
			if lf = bytes.IndexByte(p, '\n'); lf < 0 {
				lf = len(p)
			}
		}
		end := lf
		if cr := bytes.IndexByte(p[:lf], '\r'); cr >= 0 {
			end, s.cr = cr, true
		}
		s.part(p[:end])
		if end == len(p) {
			return
		}
		s.endLine()
		p, lf = p[end+1:], lf-end-1
	}
}

func (s *sse) close() {
	s.endLine()
	s.dispatch()
}

// part reads a part of one line.
func (s *sse) part(b []byte) {
	if s.state == inFieldName {
		colon := bytes.IndexByte(b, ':')
		if colon < 0 {
			s.n += copy(s.name[s.n:], b)
			return
		}
		s.n += copy(s.name[s.n:], b[:colon])
		s.beginValue()
		b = b[colon+1:]
	}
	if len(b) == 0 {
		return
	}
	if s.space && b[0] == ' ' {
		b = b[1:]
	}
	s.space = false
	switch s.state {
	case inData:
		s.to.data(b)
	case inEvent:
		s.event = append(s.event, b[:min(len(b), maxEventName-len(s.event))]...)
	}
}

func (s *sse) beginValue() {
	s.space = true
	switch string(s.name[:s.n]) {
	case "data":
		s.state = inData
		if s.lines > 0 {
			s.to.data(newline)
		}
		s.lines++
	case "event":
		s.state = inEvent
		s.event = s.event[:0]
	case "error":
		if s.state = inOther; s.errorField {
			s.state = inData
			s.event = append(s.event[:0], "error"...)
			s.lines++
		}
	default:
		s.state = inOther
	}
}

func (s *sse) endLine() {
	if s.state == inFieldName {
		if s.n == 0 {
			s.dispatch()
			return
		}
		s.beginValue()
	}
	s.state, s.n = inFieldName, 0
}

func (s *sse) dispatch() {
	if s.lines > 0 {
		s.to.dispatch(s.event)
	}
	s.event, s.lines = s.event[:0], 0
}

// ndjson splits newline-delimited JSON, one event a line.
type ndjson struct{ to stream }

func (n *ndjson) write(p []byte) {
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			n.to.data(p)
			return
		}
		n.to.data(p[:end])
		n.to.dispatch(nil)
		p = p[end+1:]
	}
}

func (n *ndjson) close() { n.to.dispatch(nil) }
