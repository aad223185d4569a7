package llmgateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// maxResponse bounds a response that is no stream, in bytes.
const maxResponse = 64 << 20

// passRequestHeaders gives the provider what the client's headers say of the
// body.
func (a *attempt) passRequestHeaders(req *http.Request) {
	if !anthropics(a.dialect) {
		return
	}
	for _, name := range [...]string{"Anthropic-Version", "Anthropic-Beta"} {
		if values := a.r.Header[name]; values != nil {
			req.Header[name] = values
		}
	}
}

// pass answers the bytes of a provider that speaks the client's dialect itself.
func (a *attempt) pass(resp *http.Response) *failure {
	contentType := resp.Header.Get("Content-Type")
	extractor := observe.New(a.dialect, a.record.Provider, contentType)
	a.seen = extractor.Info
	mediaType, _, _ := mime.ParseMediaType(contentType)
	if a.record.Stream = mediaType == "text/event-stream"; a.record.Stream {
		return a.passStream(resp, extractor)
	}

	body, err := translate.ReadAll(io.LimitReader(resp.Body, maxResponse+1), resp.ContentLength)
	if err != nil {
		return a.broken(plugins.Upstream("The provider broke off its answer."))
	}
	if len(body) > maxResponse {
		return a.broken(plugins.Upstream("The response is over %d bytes long.", maxResponse))
	}
	extractor.Write(body)
	extractor.Close()
	a.record.ResponseBytes = int64(len(body))
	a.object(body, resp.Header)
	a.finish(true)
	return nil
}

// passStream passes a stream on event by event. Until the first content, what
// has come is held: another attempt may still answer.
func (a *attempt) passStream(resp *http.Response, extractor plugins.Observer) *failure {
	if !a.record.ResponseOmitted {
		a.content.Response.Type = resp.Header.Get("Content-Type")
		a.copy.Keep(a.h.MaxBody, 0)
	}
	s := nativeStream{a: a, upstream: resp.Header, extractor: extractor, held: buffers.Get().(*buffer)}
	defer s.held.free()
	body := watchPauses(resp.Body, s.pause)
	defer body.end()

	seen := extractor.Info()
	var err error
	for err == nil && a.gone == nil {
		var n int
		if n, err = body.Read(s.room()); n > 0 {
			s.take(n)
		}
	}
	extractor.Close()
	whole := seen.Phase == plugins.Ended ||
		a.dialect == plugins.Chat && seen.Phase == plugins.Finished && errors.Is(err, io.EOF) // not all say [DONE]
	if !a.begun && !whole {
		return a.broken(plugins.Upstream("The upstream stream ended early."))
	}
	if !a.begun && seen.ErrorType != "" {
		return a.broken(plugins.Upstream("The provider failed to generate the response: %s.", printable(seen.ErrorType)))
	}
	if rest := s.held.data[s.written:]; whole && len(rest) > 0 { // the last event may lack its blank line
		a.answer()
		a.keepCopy()
		a.commit()
		a.startStream(resp.Header)
		a.write(rest)
	}
	if !whole && a.gone == nil && a.r.Context().Err() == nil {
		a.keepCopy()
		a.record.EndState = storage.UpstreamAborted
		a.commit()
		a.write(s.breakOff())
	}
	a.keepCopy()
	a.finish(whole)
	return nil
}

// keepCopy makes what was copied of the response the record's.
func (a *attempt) keepCopy() {
	a.content.Response.Data, a.record.ResponseTruncated = a.copy.Bytes(), a.copy.Truncated()
}

// minRead is what is asked for at least, in bytes.
const minRead = 16 << 10

// nativeStream is a stream that is passed on, on its way to the client.
type nativeStream struct {
	a         *attempt
	upstream  http.Header
	extractor plugins.Observer
	held      *buffer
	written   int           // of held
	searched  int           // in held: no event ends between what is written and it
	last      []byte        // written with a number, of a Responses stream that has not ended
	stands    plugins.Phase // in the record
	waited    bool          // for maxHold: nothing is held any longer
}

// room forgets what is written, and is where to read to. Until take, what is held
// stays where it is: a pause may write of it meanwhile.
func (s *nativeStream) room() []byte {
	rest := append(s.held.data[:0], s.held.data[s.written:]...)
	s.searched -= s.written
	s.written = 0
	s.held.data = slices.Grow(rest, minRead)
	return s.held.data[len(rest):cap(s.held.data)]
}

// take takes n bytes that were read behind what is held, and writes what may go.
func (s *nativeStream) take(n int) {
	a, seen := s.a, s.extractor.Info()
	held := s.held.data
	fresh := held[len(held) : len(held)+n]
	s.held.data = held[:len(held)+n]
	s.extractor.Write(fresh)
	a.hear()
	a.copy.Write(fresh)
	a.record.ResponseBytes += int64(n)
	switch {
	case a.begun || seen.Content:
	case seen.ErrorType == "" && (s.waited || seen.Phase == plugins.Ended): // or an answer without content
	default:
		return
	}
	s.release()
}

// release writes the whole events that are held. The record stands before those
// that bring the end near.
func (s *nativeStream) release() {
	held := s.held.data
	end := lastEvent(held, s.searched)
	s.searched = len(held)
	if end == 0 {
		return
	}
	phase := s.extractor.Info().Phase
	if phase > s.stands {
		s.stands = phase
		s.a.answer()
		s.a.keepCopy()
		s.a.commit()
	}
	events := held[s.written:end]
	if s.a.dialect == plugins.Responses && phase != plugins.Ended && bytes.Contains(events, sequenceKey) {
		s.last = append(s.last[:0], events...)
	}
	s.a.startStream(s.upstream)
	s.a.write(events)
	s.written = end
}

var sequenceKey = []byte(`"sequence_number":`)

// sequence is the number after that of the last event written.
func (s *nativeStream) sequence() int {
	if i := bytes.LastIndex(s.last, sequenceKey); i >= 0 {
		return number(s.last[i+len(sequenceKey):]) + 1
	}
	return 0
}

// pause releases what is held, and keeps the connection alive. The client has
// whole events alone, so that a comment never stands within one.
func (s *nativeStream) pause() time.Duration {
	s.waited = true
	s.release()
	return s.a.keepAlive(func() {
		if s.a.begun && s.extractor.Info().Phase != plugins.Ended {
			s.a.write([]byte(": ping\n\n"))
		}
	})
}

// lastEvent is where the last whole event of a stream ends, 0 if none ends behind
// from.
func lastEvent(b []byte, from int) int {
	for i := len(b) - 1; i >= max(from, 1); i-- {
		switch {
		case b[i] == '\n' && (b[i-1] == '\n' || i > 2 && string(b[i-3:i]) == "\r\n\r"),
			b[i] == '\r' && b[i-1] == '\r':
			return i + 1
		}
	}
	return 0
}

// number reads the decimal digits that b begins with.
func number(b []byte) int {
	b = bytes.TrimLeft(b, " ")
	digits := 0
	for digits < len(b) && digits < 9 && '0' <= b[digits] && b[digits] <= '9' {
		digits++
	}
	n, err := strconv.Atoi(string(b[:digits]))
	if err != nil {
		return 0
	}
	return n
}

// breakOff is what ends a stream that the provider left without an end: an
// error.
func (s *nativeStream) breakOff() []byte {
	e := plugins.Upstream("The upstream stream ended early.")
	if s.a.dialect == plugins.Responses {
		return s.failResponse(e)
	}
	data, err := json.Marshal(errorBody(s.a.dialect, e, nil))
	if err != nil { // strings always marshal
		return nil
	}
	if s.a.dialect == plugins.Messages {
		return fmt.Appendf(nil, "event: error\ndata: %s\n\n", data)
	}
	return fmt.Appendf(nil, "data: %s\n\n", data)
}

// failResponse tells of an error, and of a response that failed under the id
// that the client knows.
func (s *nativeStream) failResponse(e *plugins.Error) []byte {
	seen := s.extractor.Info()
	prompt := &translate.Request{Raw: s.a.body, Model: s.a.record.RequestModel}
	assembler := translate.NewAssembler(prompt, nil, translate.Options{ID: func(string) string { return seen.ResponseID }})
	assembler.Start(seen.Model, seen.ResponseID)
	assembler.Usage(seen.Usage)
	assembler.Fail(e)
	assembler.End()
	sequence := s.sequence()
	event, err := json.Marshal(errorEvent{"error", sequence, e.Code, e.Message, nil, newErrorInfo(e, nil)})
	if err != nil { // strings and numbers always marshal
		return nil
	}
	b := fmt.Appendf(nil, "event: error\ndata: %s\n\n", event)
	return fmt.Appendf(b, "event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":%d,\"response\":%s}\n\n",
		sequence+1, assembler.Response())
}

// errorEvent is an error within a stream, flat as it is published and nested as
// OpenAI sends it.
type errorEvent struct {
	Type     string    `json:"type"`
	Sequence int       `json:"sequence_number"`
	Code     string    `json:"code"`
	Message  string    `json:"message"`
	Param    *string   `json:"param"`
	Error    errorInfo `json:"error"`
}
