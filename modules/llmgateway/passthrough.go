package llmgateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/money/cut"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/streams"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// maxResponse bounds a response that is no stream, and an event of a stream, in bytes.
const maxResponse = 64 << 20

// answerMemory is the memory that an answer takes.
func (c *call) answerMemory(resp *http.Response) *admission.Answer {
	return c.memory().Answer(c.ctx, resp.ContentLength, maxResponse)
}

// Answer implements lane.
func (n *native) Answer(resp *http.Response) (routing.Outcome, *plugins.Error) {
	a := n.a
	observer := observe.New(a.call.dialect, a.x.Record.Provider, resp.Header)
	a.x.Answer = observer
	outcome, e := n.passAnswer(resp, observer)
	if outcome == routing.Answered { // else the record of the failure is still to be made
		a.x.Answer = nil
		observer.Free()
	}
	return outcome, e
}

func (n *native) passAnswer(resp *http.Response, observer plugins.Observer) (routing.Outcome, *plugins.Error) {
	a := n.a
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if a.call.dialect == plugins.Speech && mediaType != jsonType && !strings.HasPrefix(mediaType, "text/") {
		return n.passMedia(resp)
	}
	begun := time.Now()
	kind, all := streams.Detect(resp.Body)
	if kind == streams.Lines {
		all = streams.AsEvents(all)
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{all, resp.Body}
	streamed := kind == streams.Events || kind == streams.Lines
	unasked := streamed && a.call.input.api.Stream != nil && !a.call.input.streams()
	if a.x.Record.Stream = streamed && !unasked; a.x.Record.Stream {
		return n.passStream(resp, observer, begun)
	}
	return n.passObject(resp, observer, mediaType, unasked)
}

// passObject passes an answer in one piece: an object, or a text. unasked says that the provider streams it,
// though the client has asked for no stream: the client gets the object that the events make.
func (n *native) passObject(resp *http.Response, observer plugins.Observer, mediaType string, unasked bool) (routing.Outcome, *plugins.Error) {
	a := n.a
	memory := a.call.answerMemory(resp)
	defer memory.Release()
	body, err := translate.ReadAll(memory.Reader(resp.Body), resp.ContentLength)
	if refused, ok := errors.AsType[*plugins.Error](err); ok {
		return a.endOutOfMemory(refused)
	}
	if err != nil {
		return a.endBroken(plugins.Upstream("The provider broke off its answer."))
	}
	// A transcript may also be plain text, as SubRip and WebVTT are.
	isText := a.call.dialect == plugins.Transcription && mediaType == "text/plain" && len(body) > 0
	isJSON := !unasked && plugins.ValidJSON(body)
	if isText || unasked || isJSON { // or else it may end in half of a count
		observer.Write(body)
	}
	observer.Close()
	if a.call.dialect == plugins.Embeddings {
		if warning := fusedWarning(a.call.input.body, body); warning != "" {
			a.client.warnings = append(a.client.warnings, warning)
		}
		body = packEmbeddings(a.call.input.body, body)
	}
	a.x.Record.ResponseBytes = int64(len(body))
	answer, outcome := body, observe.OutcomeOf(observer.Info())
	if unasked {
		if outcome != observe.Failed && observe.EndsInDone(a.call.dialect, answer) {
			outcome = observe.Cut
		}
		body, _ = observe.Transcript(a.call.dialect).Stored("text/event-stream", answer)
		isJSON = plugins.ValidJSON(body)
	}
	switch {
	case unasked && (outcome == observe.Cut || outcome == observe.Empty):
		return n.endUnread(resp, answer, outcome.Error())
	case !isText && outcome == observe.Failed && !(observer.Info().Content && observer.Info().ErrorType == ""): // text with a reason stays
		return n.endStated(resp, answer)
	case !isText && !(isJSON && observe.IsResponse(a.call.dialect, body)):
		return n.endUnread(resp, answer, plugins.Upstream("The provider answered with something that is no response."))
	case outcome == observe.Empty && a.call.dialect == plugins.Chat:
		return n.endUnread(resp, answer, outcome.Error())
	}
	n.keepAnswer(body)
	contentType := resp.Header.Get("Content-Type")
	if mediaType != "text/plain" || isJSON {
		contentType = jsonType
	}
	if stream := a.call.input.api.Stream; stream != nil && a.call.input.streams() { // the provider ignores `stream`
		a.client.keepResponse(body, jsonType)
		a.x.Commit(storage.Complete)
		a.client.writeEvents(stream(gjson.ParseBytes(body)), resp.Header)
	} else {
		a.client.writeObject(body, contentType, resp.Header)
	}
	a.finish(true)
	return routing.Answered, nil
}

// passMedia answers bytes that are neither an object nor events, such as audio.
func (n *native) passMedia(resp *http.Response) (routing.Outcome, *plugins.Error) {
	a := n.a
	if !a.x.Record.ResponseOmitted {
		a.client.copy.contentType = resp.Header.Get("Content-Type")
		a.client.copy.Keep(int64(a.call.h.MaxBody), resp.ContentLength)
	}
	return a.passBytes(resp, a.client.copy.Write, func(bool) { a.client.keepCopy() })
}

// passStream passes a stream event by event. It holds the events before the first content:
// until then another attempt may answer. begun is when the header came.
func (n *native) passStream(resp *http.Response, observer plugins.Observer, begun time.Time) (routing.Outcome, *plugins.Error) {
	a := n.a
	if !a.x.Record.ResponseOmitted {
		a.client.copy.contentType = resp.Header.Get("Content-Type")
		a.client.copy.Keep(int64(a.call.h.MaxBody), 0)
	}
	s := nativeStream{lane: n, a: a, upstream: resp.Header, observer: observer, pending: buffers.Get().(*buffer), memory: a.call.answerMemory(resp)}
	defer s.pending.free()
	defer s.memory.Release()
	var cutter *cut.Reader
	if limit := a.cutBytes(); limit > 0 {
		cutter = cut.NewReader(resp.Body, a.call.dialect, limit)
		resp.Body = cutter
	}
	body := newIdleReader(resp.Body, nil, s.idle)
	body.timer.Reset(max(maxHold-time.Since(begun), 0))
	defer body.stop()

	seen := observer.Info()
	var err error
	for err == nil && a.client.err == nil && !s.unfinished {
		var size int
		if size, err = body.Read(s.next()); size > 0 {
			a.x.Cut = cutter != nil && cutter.Over()
			s.take(size)
		}
	}
	observer.Close()
	outcome := observe.OutcomeOf(seen)
	if s.unfinished || outcome != observe.Failed && seen.Phase < plugins.Ended && !errors.Is(err, io.EOF) {
		outcome = observe.Cut
	}
	switch {
	case a.client.begun || outcome == observe.Ended:
	case outcome == observe.Failed:
		return n.endStated(resp, s.pending.data)
	default:
		return n.endUnread(resp, s.pending.data, outcome.Error())
	}
	complete := outcome == observe.Ended
	terminated := complete || outcome == observe.Failed && seen.Phase == plugins.Ended // the client has the end, whatever it says
	if rest := s.pending.data[s.written:]; complete && len(rest) > 0 {                 // the last event may lack its blank line
		a.client.keepCopy()
		n.keepAnswer(nil)
		a.x.Commit(storage.Complete)
		a.client.writeEvents(rest, resp.Header)
	}
	if !complete && a.client.err == nil && a.call.r.Context().Err() == nil {
		a.client.keepCopy()
		e, end := s.failure()
		if seen.ErrorType == "" && !a.x.Cut { // the client is told of a failure of which the provider says nothing
			a.x.Record.ErrorType, a.x.Refusal = e.Type, e
		}
		if !terminated {
			a.x.Commit(storage.UpstreamAborted)
			a.client.write(end)
		}
	}
	if a.client.usage != nil {
		a.client.usage.Close()
	}
	a.client.keepCopy()
	a.client.repeatable = a.client.copy.Bytes()
	a.finish(complete)
	return routing.Answered, nil
}

// endStated ends an attempt whose provider states in its answer, before any content, that it failed.
func (n *native) endStated(resp *http.Response, body []byte) (routing.Outcome, *plugins.Error) {
	a := n.a
	if a.call.ctx.Err() != nil {
		return a.endAborted()
	}
	statement := *resp
	statement.Body = io.NopCloser(bytes.NewReader(n.statement(body)))
	e, outcome := a.refusal(&statement)
	if e.Code != apierror.UpstreamAuth { // the answer may name the key
		n.keepFailure(resp.Header.Get("Content-Type"), body)
	}
	return a.fail(storage.UpstreamAborted, e, outcome)
}

// endUnread ends an attempt whose answer is none, with the error that it states in some shape, or else
// with e.
func (n *native) endUnread(resp *http.Response, body []byte, e *plugins.Error) (routing.Outcome, *plugins.Error) {
	a := n.a
	if stated := plugins.ErrorWithin(n.statement(body)); stated != nil && a.call.ctx.Err() == nil {
		e, outcome := a.blame(stated, resp.StatusCode)
		if e.Code != apierror.UpstreamAuth { // the answer may name the key
			n.keepFailure(resp.Header.Get("Content-Type"), body)
		}
		return a.fail(storage.UpstreamAborted, e, outcome)
	}
	n.keepFailure(resp.Header.Get("Content-Type"), body)
	return a.endBroken(e)
}

// statement returns the JSON that states the failure: the body, or the data of an event of it.
func (n *native) statement(body []byte) []byte {
	if kind, _ := streams.KindOf(body); kind != streams.Events {
		return body
	}
	var last []byte
	for data := range streams.SSEData(body) {
		seen := observe.Read(n.a.call.dialect, n.a.x.Record.Provider, nil, data)
		if plugins.ValidJSON(data) {
			last = data
		}
		if observe.OutcomeOf(seen) == observe.Failed {
			return data
		}
	}
	return last
}

// keepFailure keeps for the record what came of an answer that the client does not get.
func (n *native) keepFailure(contentType string, body []byte) {
	x := n.a.x
	head := bytes.Clone(body[:min(len(body), recording.MaxError)])
	x.Kept.Response(&x.Record, storage.Body{Type: contentType, Data: head}, recording.MaxError, len(head) < len(body))
}

// minRead is the room for one read of an answer, in bytes.
const minRead = 16 << 10

// nativeStream is a stream that is passed on, on its way to the client.
type nativeStream struct {
	lane      *native
	a         *attempt
	upstream  http.Header
	observer  plugins.Observer
	pending   *buffer
	memory    *admission.Answer // the memory that pending takes
	written   int               // how many bytes of pending the client has
	searched  int               // no event ends in pending[written:searched]
	last      []byte            // the last events written that have numbers; only of Responses, before the end
	failed    []byte            // the JSON that states that the provider failed, nil as long as it has not
	committed plugins.Phase     // the phase that the record has
	waited    bool              // maxHold is over: nothing is held back any longer
	// unfinished: the stream is over without its end. An event has no end or no room, or it says
	// [DONE] in place of its dialect's terminal event.
	unfinished bool
}

// next drops what the client has from pending, and returns where to read to. The bytes of pending do
// not move until take, because idle may write them meanwhile.
func (s *nativeStream) next() []byte {
	rest := append(s.pending.data[:0], s.pending.data[s.written:]...)
	s.searched -= s.written
	s.written = 0
	s.pending.data = slices.Grow(rest, minRead)
	return s.pending.data[len(rest):cap(s.pending.data)]
}

// take adds n bytes that were read into next, and writes the events that may go.
func (s *nativeStream) take(n int) {
	a, seen := s.a, s.observer.Info()
	pending := s.pending.data
	fresh := pending[len(pending) : len(pending)+n]
	s.pending.data = pending[:len(pending)+n]
	if s.memory.Grow(int64(len(s.pending.data))) != nil {
		s.unfinished = true
		return
	}
	running := seen.Phase != plugins.Ended
	s.observer.Write(fresh)
	a.x.MarkFirstToken()
	if running && seen.Phase == plugins.Ended && observe.EndsInDone(a.call.dialect, s.pending.data) {
		done := bytes.LastIndex(s.pending.data, doneEvent)
		fresh = fresh[:max(len(fresh)-(len(s.pending.data)-done), 0)]
		s.pending.data = s.pending.data[:done]
		s.unfinished = true
	}
	a.client.copy.Write(fresh)
	a.x.Record.ResponseBytes += int64(len(fresh))
	switch {
	case a.client.begun || seen.Content:
	case seen.ErrorType == "" && !s.unfinished && (s.waited || seen.Phase == plugins.Ended && observe.OutcomeOf(seen) == observe.Ended): // or an answer without content
	default:
		return
	}
	s.release()
}

var doneEvent = []byte("data: [DONE]")

// release writes the whole events that are held. It commits the record before events that
// announce the end.
func (s *nativeStream) release() {
	pending := s.pending.data
	end := lastEvent(pending, s.searched)
	s.searched = len(pending)
	if end == 0 {
		return
	}
	phase := s.observer.Info().Phase
	if phase > s.committed && !s.unfinished {
		s.committed = phase
		s.a.client.keepCopy()
		if phase == plugins.Ended {
			s.lane.keepAnswer(nil)
		}
		s.a.x.Commit(endStates[phase])
	}
	events := pending[s.written:end]
	if s.a.call.dialect == plugins.Responses && (phase != plugins.Ended || s.unfinished) && bytes.Contains(events, sequenceKey) {
		s.last = append(s.last[:0], events...)
	}
	if s.failed == nil && s.observer.Info().ErrorType != "" {
		s.failed = bytes.Clone(s.lane.statement(events))
	}
	s.a.client.writeEvents(events, s.upstream)
	s.written = end
}

// endStates are the end states that records have if the process ends after a phase.
var endStates = [...]storage.EndState{plugins.Finished: storage.Interrupted, plugins.Ended: storage.Complete}

var sequenceKey = []byte(`"sequence_number":`)

// sequence returns the number of the next event.
func (s *nativeStream) sequence() int {
	if i := bytes.LastIndex(s.last, sequenceKey); i >= 0 {
		return int(gjson.ParseBytes(s.last[i+len(sequenceKey):]).Int()) + 1
	}
	return 0
}

// idle releases what is held, and keeps the connection alive. The client gets whole events, so
// that the comment stands between two events.
func (s *nativeStream) idle() time.Duration {
	s.waited = true
	s.release()
	return s.a.client.keepAlive(func() {
		if s.a.client.begun && s.observer.Info().Phase != plugins.Ended {
			s.a.client.write([]byte(": ping\n\n"))
		}
	})
}

// lastEvent returns where the last whole event of a stream ends, 0 if no event ends after
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

// failure returns the end of a stream that the provider broke off: an error, unless the
// provider has reported one as its dialect has them, and for Responses the failed response.
func (s *nativeStream) failure() (e *plugins.Error, end []byte) {
	e = plugins.Upstream("The upstream stream ended early.")
	if s.failed != nil {
		e = s.a.target.Account.API.Error(&http.Response{StatusCode: http.StatusOK, Header: s.upstream, Body: io.NopCloser(bytes.NewReader(s.failed))})
	}
	reported := gjson.GetBytes(s.failed, "error").IsObject() // where clients look for it
	if s.a.call.dialect == plugins.Responses {
		return e, s.failedResponse(e, s.failed != nil)
	}
	if reported {
		return e, nil
	}
	data := apierror.Body(s.a.call.dialect, e)
	if s.a.call.dialect == plugins.Messages {
		return e, fmt.Appendf(nil, "event: error\ndata: %s\n\n", data)
	}
	return e, fmt.Appendf(nil, "data: %s\n\n", data)
}

// failedResponse returns the events of an error, unless the provider has reported it, and of
// the failed response under the id that the client knows.
func (s *nativeStream) failedResponse(e *plugins.Error, reported bool) []byte {
	seen := s.observer.Info()
	request := &translate.Request{Raw: s.a.call.input.body, Model: s.a.x.Record.RequestModel}
	assembler := translate.NewAssembler(request, nil, translate.Options{ID: func(string) string { return seen.ResponseID }})
	assembler.Start(seen.Model, seen.ResponseID)
	assembler.Usage(seen.Usage)
	assembler.Fail(e)
	assembler.End()
	if reported {
		e = nil
	}
	return translate.AppendFailure(nil, s.sequence(), e, assembler.Response())
}
