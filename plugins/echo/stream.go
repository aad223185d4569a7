package echo

import (
	"bytes"
	"encoding/json"
	"iter"
	"net/http"
	"strings"
)

// eventWriter writes server-sent events, each in one write and flushed. After
// the client is gone it does nothing.
type eventWriter struct {
	w    http.ResponseWriter
	ctrl *http.ResponseController
	r    *http.Request
	buf  bytes.Buffer
	gone bool
}

func newEventWriter(w http.ResponseWriter, r *http.Request) *eventWriter {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	w.Header().Set("Cache-Control", "no-cache")
	return &eventWriter{w: w, ctrl: http.NewResponseController(w), r: r}
}

// event sends data under a name, or without one when name is empty.
func (e *eventWriter) event(name string, data json.RawMessage) {
	if e.gone {
		return
	}
	e.buf.Reset()
	if name != "" {
		e.buf.WriteString("event: " + name + "\n")
	}
	e.buf.WriteString("data: ")
	e.buf.Write(data)
	e.buf.WriteString("\n\n")
	_, err := e.w.Write(e.buf.Bytes())
	e.gone = err != nil || e.r.Context().Err() != nil
	_ = e.ctrl.Flush()
}

// done sends the mark that ends OpenAI's streams.
func (e *eventWriter) done() { e.event("", json.RawMessage("[DONE]")) }

// words are the pieces that a text is streamed in.
func words(text string) iter.Seq[string] { return pieces(text, " ") }

// members are the pieces that a call's arguments are streamed in.
func members(arguments string) iter.Seq[string] { return pieces(arguments, ":") }

// pieces splits s after each separator, with nothing lost and no empty piece.
func pieces(s, separator string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for piece := range strings.SplitAfterSeq(s, separator) {
			if piece != "" && !yield(piece) {
				return
			}
		}
	}
}
