package llmgateway

import (
	"bytes"
	"net/http"

	"github.com/weirhq/weir/plugins/streams"
)

// eventWriter is the http.ResponseWriter of a call of Responses that answers no HTTP: a call
// over a WebSocket, or in the background. A call writes whole events.
type eventWriter struct {
	header http.Header
	status int // 0 before the header is written
	event  func(data []byte) error
	refuse func(status int, answer []byte) error // takes an error in place of events
}

// Header implements http.ResponseWriter.
func (w *eventWriter) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *eventWriter) WriteHeader(status int) { w.status = status }

// Write implements http.ResponseWriter.
func (w *eventWriter) Write(p []byte) (int, error) {
	if w.status >= http.StatusBadRequest {
		return len(p), w.refuse(w.status, p)
	}
	for e, err := range streams.ReadSSE(bytes.NewReader(p)) {
		if err != nil {
			return 0, err
		}
		if len(e.Data) == 0 || e.Data[0] != '{' { // [DONE]
			continue
		}
		if err := w.event(e.Data); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// FlushError implements the http.ResponseController's flushing: nothing is held.
func (w *eventWriter) FlushError() error { return nil }
