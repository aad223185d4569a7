// Package capture watches an HTTP exchange as it passes through a handler,
// without changing what either side can observe: it counts the bytes, keeps
// bounded copies of the bodies, and calls an Observer before the client can see what
// happens. It does not depend on language models.
package capture

import (
	"net/http"
	"strconv"
	"sync/atomic"
)

// Observer is told what the client is about to see.
type Observer interface {
	// Early is called before an informational header goes out, and may change it.
	Early(header http.Header)
	// Header is called once, before the final header goes out, and may change
	// it. No body follows when bodyless is true.
	Header(header http.Header, bodyless bool)
	// Chunk is called before a piece of the body goes out. It does not keep p.
	// last is true when p completes the announced Content-Length.
	Chunk(p []byte, last bool)
}

// Writer is a response writer with an Observer. It passes everything on unchanged:
// informational headers, trailers, flushes, and the results of the writer beneath it.
type Writer struct {
	http.ResponseWriter

	observer Observer
	method   string
	status   int
	length   int64 // Content-Length, -1 without one
	bodyless bool
	tunnel   bool
	err      error

	// Two goroutines use the fields below, one for each direction of a tunnel.
	sent, received         atomic.Int64
	fromClient, fromServer Reader       // may be nil
	endedBy                atomic.Int32 // nobody, theClient or theServer
}

// Who ended a tunnel first.
const (
	nobody int32 = iota
	theClient
	theServer
)

// Watch makes w pass the answer to a request on to inner.
func (w *Writer) Watch(inner http.ResponseWriter, method string, o Observer) {
	w.ResponseWriter, w.method, w.observer, w.length = inner, method, o, -1
}

// Status is the final status that was written, 0 before it is written.
func (w *Writer) Status() int { return w.status }

// Length is the Content-Length that was announced, -1 without one.
func (w *Writer) Length() int64 { return w.length }

// Sent counts the body bytes that the writer beneath has taken.
func (w *Writer) Sent() int64 { return w.sent.Load() }

// Received counts the bytes that came from the client after an upgrade.
func (w *Writer) Received() int64 { return w.received.Load() }

// Tunnel reports whether the exchange became a two-way stream, by an upgrade or by
// CONNECT. Its bytes are counted, but the Observer gets no Chunk.
func (w *Writer) Tunnel() bool { return w.tunnel }

// Follow sets the readers of a tunnel that begins with a Hijack or with an answer to
// CONNECT. fromClient gets the bytes from the client before the server does, and
// fromServer the bytes from the server before the client does. Each reader is called by
// one goroutine. After a CONNECT, the bytes from the client are the request body, which a
// Body reads and not the Writer.
func (w *Writer) Follow(fromClient, fromServer Reader) {
	w.fromClient, w.fromServer = fromClient, fromServer
}

// ClientLeft reports whether the client ended a tunnel that began with a Hijack.
func (w *Writer) ClientLeft() bool { return w.endedBy.Load() == theClient }

// Short reports whether fewer bytes were sent than Content-Length announced.
func (w *Writer) Short() bool { return !w.bodyless && w.Sent() < w.length }

// Err is the first error of the writer beneath. It means that the client is gone.
func (w *Writer) Err() error { return w.err }

// WriteHeader implements http.ResponseWriter.
func (w *Writer) WriteHeader(status int) {
	switch informational := 100 <= status && status <= 199 && status != http.StatusSwitchingProtocols; {
	case w.status != 0:
	case informational:
		w.observer.Early(w.Header())
	default:
		w.begin(status)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *Writer) begin(status int) {
	w.status = status
	w.tunnel = status == http.StatusSwitchingProtocols ||
		w.method == http.MethodConnect && 200 <= status && status <= 299
	w.bodyless = !w.tunnel && (w.method == http.MethodHead ||
		status == http.StatusNoContent || status == http.StatusNotModified)
	header := w.Header()
	if lengths := header["Content-Length"]; len(lengths) > 0 && !w.bodyless && !w.tunnel {
		if n, err := strconv.ParseInt(lengths[0], 10, 64); err == nil {
			w.length = n
			w.bodyless = n == 0
		}
	}
	w.observer.Header(header, w.bodyless)
}

// Write implements http.ResponseWriter.
func (w *Writer) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !w.bodyless && !w.tunnel && len(p) > 0 {
		total := w.Sent() + int64(len(p))
		w.observer.Chunk(p, w.length >= 0 && total >= w.length)
	}
	if w.tunnel && w.fromServer != nil {
		w.fromServer.Write(p)
	}
	n, err := w.ResponseWriter.Write(p)
	if !w.bodyless {
		w.sent.Add(int64(n))
	}
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}

// Unwrap is for http.ResponseController.
func (w *Writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// FlushError is what http.ResponseController calls. A flush sends the header if
// nothing did before.
func (w *Writer) FlushError() error {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Interface guard
var _ http.ResponseWriter = (*Writer)(nil)
