package socket

import (
	"bytes"
	"net/http"

	"github.com/weirhq/weir/plugins/streams"
)

// Events is the http.ResponseWriter of a call of Responses that answers no HTTP: a call over
// a WebSocket, or in the background. A call writes whole events.
type Events struct {
	// Event takes an event. Refuse takes an error in place of events.
	Event  func(data []byte) error
	Refuse func(status int, answer []byte) error

	header http.Header
	status int // 0 before the header is written
}

// Header implements http.ResponseWriter.
func (w *Events) Header() http.Header {
	if w.header == nil {
		w.header = make(http.Header)
	}
	return w.header
}

// WriteHeader implements http.ResponseWriter.
func (w *Events) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *Events) Write(p []byte) (int, error) {
	if w.status >= http.StatusBadRequest {
		return len(p), w.Refuse(w.status, p)
	}
	for e, err := range streams.ReadSSE(bytes.NewReader(p)) {
		if err != nil {
			return 0, err
		}
		if len(e.Data) == 0 || e.Data[0] != '{' { // [DONE]
			continue
		}
		if err := w.Event(e.Data); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// FlushError implements the http.ResponseController's flushing: nothing is held.
func (w *Events) FlushError() error { return nil }
