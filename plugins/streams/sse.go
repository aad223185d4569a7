package streams

import "bytes"

// SSE splits an event stream as the WHATWG specifies it (HTML, section 9.2.6),
// after its byte order mark. The data passes on as it comes. The last event
// counts without its blank line, which many providers leave out. A line
// "error: {...}" is the data of an event named "error": llama.cpp sent its errors so.
// https://github.com/ggml-org/llama.cpp/pull/16109
type SSE struct {
	To Sink

	state lineState
	space bool // a space that comes now belongs to the colon before it
	cr    bool // a line feed that comes now belongs to the carriage return before it
	lines int  // data lines of the event

	name  [len("event") + 1]byte // of the field: a longer one is none that counts
	n     int
	event []byte
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

// Write reads the next piece of the stream.
func (s *SSE) Write(p []byte) {
	lf := -1 // the next line feed of p; -1 if it is to be looked for
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

// Close ends the last event.
func (s *SSE) Close() {
	s.endLine()
	s.dispatch()
}

// part reads a part of one line.
func (s *SSE) part(b []byte) {
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
		s.To.Data(b)
	case inEvent:
		s.event = append(s.event, b[:min(len(b), maxEventName-len(s.event))]...)
	}
}

func (s *SSE) beginValue() {
	s.space = true
	switch string(s.name[:s.n]) {
	case "data":
		s.beginData()
	case "event":
		s.state = inEvent
		s.event = s.event[:0]
	case "error":
		s.event = append(s.event[:0], "error"...)
		s.beginData()
	default:
		s.state = inOther
	}
}

func (s *SSE) beginData() {
	s.state = inData
	if s.lines > 0 {
		s.To.Data(newline)
	}
	s.lines++
}

func (s *SSE) endLine() {
	if s.state == inFieldName {
		if s.n == 0 {
			s.dispatch()
			return
		}
		s.beginValue()
	}
	s.state, s.n = inFieldName, 0
}

func (s *SSE) dispatch() {
	if s.lines > 0 {
		s.To.Dispatch(s.event)
	}
	s.event, s.lines = s.event[:0], 0
}

// IsNDJSON reports whether a media type is one of newline-delimited JSON.
func IsNDJSON(mediaType string) bool {
	switch mediaType {
	case "application/x-ndjson", "application/ndjson", "application/jsonl", "application/jsonlines",
		"application/x-jsonlines", "application/json-lines", "application/stream+json":
		return true
	}
	return false
}

// NDJSON splits newline-delimited JSON, one event a line.
type NDJSON struct{ To Sink }

// Write reads the next piece of the stream.
func (n *NDJSON) Write(p []byte) {
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			n.To.Data(p)
			return
		}
		n.To.Data(p[:end])
		n.To.Dispatch(nil)
		p = p[end+1:]
	}
}

// Close ends the last line.
func (n *NDJSON) Close() { n.To.Dispatch(nil) }
