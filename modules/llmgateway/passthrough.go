package llmgateway

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/apierror"
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
	contentType := resp.Header.Get("Content-Type")
	if mediaType != "text/plain" || isJSON {
		contentType = jsonType
	}
	n.writeObject(body, contentType, resp.Header)
	return routing.Answered, nil
}

// writeObject answers the client with an object or a text. A client that has asked for a stream, which the
// provider ignores, gets the events that say the same.
func (n *native) writeObject(body []byte, contentType string, upstream http.Header) {
	a := n.a
	n.keepAnswer(body)
	if stream := a.call.input.api.Stream; stream != nil && a.call.input.streams() {
		a.client.keepResponse(body, jsonType)
		a.x.Commit(storage.Complete)
		a.client.writeEvents(stream(gjson.ParseBytes(body)), upstream)
	} else {
		a.client.writeObject(body, contentType, upstream)
	}
	a.finish(true)
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
	outcome := s.pass(resp.Body, begun)
	switch {
	case a.client.begun || outcome == observe.Ended:
	case outcome == observe.Failed:
		return n.endStated(resp, s.pending.data)
	default:
		return n.endUnread(resp, s.pending.data, outcome.Error())
	}
	if outcome == observe.Ended {
		s.writeRest()
	} else if a.client.err == nil && a.call.r.Context().Err() == nil {
		s.writeFailure(outcome)
	}
	if a.client.usage != nil {
		a.client.usage.Close()
	}
	a.client.keepCopy()
	a.client.repeatable = a.client.copy.Bytes()
	a.finish(outcome == observe.Ended)
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
