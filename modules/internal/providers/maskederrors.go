package providers

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/streams"
)

// maxRefusal is how much of the body of a refusal is searched at once, in bytes.
const maxRefusal = 64 << 10

// maskAccount puts asterisks in the place of what errors in an answer name of the platform's account, such as
// its organisation (plugins.MaskAccount). All of a refusal is an error. In any other answer, only a short event
// or message that has an error is searched: the model may have written the rest.
func maskAccount(resp *http.Response) {
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == streams.FramesType { // whose frames have checksums
		return
	}
	errors := &maskedErrors{body: resp.Body, max: observe.MaxStatement}
	if resp.StatusCode >= http.StatusBadRequest {
		errors.refusal, errors.states, errors.max = true, true, maxRefusal
	}
	resp.Body = readCloser{errors, resp.Body}
}

// HideAccount masks in an error what it names of the platform's account, if the error comes from frames with
// checksums, which maskAccount leaves as they are.
func (a *Account) HideAccount(e *plugins.Error) {
	if masked := []byte(e.Message); a.Platform {
		plugins.MaskAccount(masked)
		e.Message = string(masked)
	}
}

// maskedErrors reads a body with its errors masked. It holds back what may be of an error, up to the end of its
// event.
type maskedErrors struct {
	body    io.Reader
	max     int    // how long an event is at most that states an error, in bytes
	refusal bool   // all of the body is an error
	states  bool   // what is held is of an error
	held    []byte // what was read and has not passed
	ready   int    // how many bytes of held can pass
	err     error  // of body
}

// Read implements io.Reader.
func (m *maskedErrors) Read(p []byte) (n int, err error) {
	for m.release(); m.ready == 0; m.release() {
		switch {
		case m.err != nil:
			return 0, m.err
		case len(m.held) == 0 && !m.states: // nothing waits: without a copy
			n, m.err = m.body.Read(p)
			var passes int
			passes, m.states = findError(p[:n])
			m.held = append(m.held, p[passes:n]...)
			if passes > 0 {
				return passes, nil
			}
		default:
			m.held = slices.Grow(m.held, minRead)
			n, m.err = m.body.Read(m.held[len(m.held):cap(m.held)])
			m.held = m.held[:len(m.held)+n]
		}
	}
	n = copy(p, m.held[:m.ready])
	m.ready -= n
	m.held = append(m.held[:0], m.held[n:]...)
	return n, nil
}

// release sets ready, unless nothing of what is held can pass yet.
func (m *maskedErrors) release() {
	if m.ready > 0 || len(m.held) == 0 {
		return
	}
	if !m.states {
		if m.ready, m.states = findError(m.held); !m.states && m.err != nil {
			m.ready = len(m.held)
		}
		if m.ready > 0 || !m.states {
			return
		}
	}
	end := m.end()
	if end == 0 {
		return
	}
	if m.refusal || end <= m.max {
		plugins.MaskAccount(m.held[:end])
	}
	m.ready, m.states = end, m.refusal
}

// end returns where the error ends that is held, 0 if that is not known yet.
func (m *maskedErrors) end() int {
	if !m.refusal {
		if end := endOfEvent(m.held); end > 0 {
			return end
		}
	}
	if m.err != nil || len(m.held) > m.max {
		return len(m.held)
	}
	return 0
}

// errorMember is what events and objects have that state an error: a member, or a type. Responses have the
// member with null.
var (
	errorMember = []byte(`"error"`)
	null        = []byte("null")
)

// findError returns where a text may begin to state an error, its length if it does not. certain is false if
// what follows decides.
func findError(text []byte) (at int, certain bool) {
	for {
		i := bytes.Index(text[at:], errorMember)
		if i < 0 {
			break
		}
		at += i
		value := bytes.TrimLeft(text[at+len(errorMember):], ": \t\r\n")
		if !bytes.HasPrefix(value, null) {
			return at, !bytes.HasPrefix(null, value)
		}
		at += len(errorMember)
	}
	for begun := min(len(errorMember)-1, len(text)-at); begun > 0; begun-- {
		if bytes.HasSuffix(text, errorMember[:begun]) {
			return len(text) - begun, false
		}
	}
	return len(text), false
}

// endOfEvent returns where the first event in a text ends, 0 if none does.
func endOfEvent(text []byte) (end int) {
	for _, blank := range [...]string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.Index(text, []byte(blank)); i >= 0 && (end == 0 || i+len(blank) < end) {
			end = i + len(blank)
		}
	}
	return end
}
