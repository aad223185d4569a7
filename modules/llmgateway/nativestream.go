package llmgateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/money/cut"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

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

// pass passes the events of a body until it ends, and returns how it did. begun is when the header came.
func (s *nativeStream) pass(body io.ReadCloser, begun time.Time) observe.Outcome {
	a := s.a
	var cutter *cut.Reader
	if limit := a.cutBytes(); limit > 0 {
		cutter = cut.NewReader(body, a.call.dialect, limit)
		body = cutter
	}
	reader := newIdleReader(body, nil, s.idle)
	reader.timer.Reset(max(maxHold-time.Since(begun), 0))
	defer reader.stop()

	var err error
	for err == nil && a.client.err == nil && !s.unfinished {
		var size int
		if size, err = reader.Read(s.next()); size > 0 {
			a.x.Cut = cutter != nil && cutter.Over()
			s.take(size)
		}
	}
	s.observer.Close()
	seen := s.observer.Info()
	outcome := observe.OutcomeOf(seen)
	if s.unfinished || outcome != observe.Failed && seen.Phase < plugins.Ended && !errors.Is(err, io.EOF) {
		outcome = observe.Cut
	}
	return outcome
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

// writeRest writes the end of a complete stream whose last event lacks its blank line.
func (s *nativeStream) writeRest() {
	a, rest := s.a, s.pending.data[s.written:]
	if len(rest) == 0 {
		return
	}
	a.client.keepCopy()
	s.lane.keepAnswer(nil)
	a.x.Commit(storage.Complete)
	a.client.writeEvents(rest, s.upstream)
}

// writeFailure tells a client that waits of a stream that has failed after content, unless the provider has told
// it the end.
func (s *nativeStream) writeFailure(outcome observe.Outcome) {
	a, seen := s.a, s.observer.Info()
	a.client.keepCopy()
	e, end := s.failure()
	if seen.ErrorType == "" && !a.x.Cut { // the provider does not report the failure, so Weir does
		a.x.Record.ErrorType, a.x.Refusal = e.Type, e
	}
	if outcome == observe.Failed && seen.Phase == plugins.Ended { // the client has the end, whatever it says
		return
	}
	a.x.Commit(storage.UpstreamAborted)
	a.client.write(end)
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
