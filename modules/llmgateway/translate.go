package llmgateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/stored"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// translate reads an answer in the provider's dialect, and answers what the Assembler makes of
// it in the client's dialect.
func (a *attempt) translate(resp *http.Response) (routing.Outcome, *plugins.Error) {
	switch {
	case a.call.compacts:
		return a.compact(resp)
	case a.call.dialect == plugins.InputTokens:
		return a.count(resp)
	}
	out := &translatedStream{a: a, upstream: resp.Header, events: buffers.Get().(*buffer)}
	defer out.events.free()
	options := translate.Options{Seal: a.seal, Encoder: a.call.api.Encoder(a.request), Cut: int(a.cutBytes())}
	if provider := a.target.Account.Provider; plugins.IsVendor(provider) { // who states a cost is believed in every lane
		options.Provider = provider
	}
	if a.mcp != nil {
		options.Items = a.mcp.Items
	}
	if a.call.dialect == plugins.Responses {
		options.ID = stored.IDs(a.x.Record.ID)
	}
	assembler := translate.NewAssembler(a.request, out, options)
	a.x.Answer = assembler
	if a.x.Record.Stream = a.request.Stream; a.x.Record.Stream && a.call.lead != nil {
		a.client.copy.Keep(int64(a.call.h.MaxBody), 0)
	}
	room := a.call.room(resp)
	defer room.Release()

	a.read(resp, out, assembler, room)
	a.x.Cut = assembler.Cut()
	if a.mcp != nil {
		a.useTools(out, assembler, room)
	}
	if e := assembler.Failure(); e != nil && !assembler.Committed() {
		if room.Refused() {
			return a.noRoom(e)
		}
		if a.call.ctx.Err() != nil {
			return a.left()
		}
		e, outcome := a.blame(e, http.StatusOK)
		if a.round > 0 { // an answer that was charged
			outcome = routing.Abort
		}
		return a.fail(storage.UpstreamAborted, e, outcome)
	}
	rest := assembler.End()
	whole := assembler.Failure() == nil
	a.remember(assembler.Outputs())
	if !a.request.Stream {
		a.extend(rest)
		a.writeObject(rest, jsonType, resp.Header)
		a.finish(whole)
		return routing.Answered, nil
	}
	out.add(rest)
	if a.call.lead != nil { // others get the events
		a.client.copy.contentType = "text/event-stream"
		a.keepCopy()
		a.repeatable = a.client.copy.Bytes()
	} else {
		a.keepResponse(assembler.Response(), jsonType)
	}
	end := storage.Complete
	if !whole {
		end = storage.UpstreamAborted
	}
	a.extend(assembler.Response())
	a.commit(end) // before the client has the terminal event
	out.send()
	a.finish(whole)
	return routing.Answered, nil
}

// read reads a provider's answer, and keeps the client's connection alive meanwhile.
func (a *attempt) read(resp *http.Response, out *translatedStream, assembler *translate.Assembler, room *admission.Answer) {
	defer resp.Body.Close()
	if a.request.Stream {
		body := newIdleReader(resp.Body, out.flush, func() time.Duration { return out.idle(assembler) })
		defer body.stop()
		resp.Body = body
	}
	a.decode(resp, assembler, room)
}

// answerBody is the body of an answer up to where the response was cut. The response in the
// assembler takes memory. So do the bytes that have come since the response last grew, because an
// event or an object is read whole.
type answerBody struct {
	io.ReadCloser
	assembler *translate.Assembler
	room      *admission.Answer
	size      int // of the response at the last read, in bytes
	since     int // bytes that have come while the response had this size
}

// Read implements io.Reader.
func (b *answerBody) Read(p []byte) (int, error) {
	if b.assembler.Cut() {
		return 0, io.EOF
	}
	n, err := b.ReadCloser.Read(p)
	if size := b.assembler.Size(); size != b.size {
		b.size, b.since = size, 0
	}
	b.since += n
	if refused := b.room.Grow(int64(b.size + b.since)); refused != nil {
		return n, refused
	}
	return n, err
}

// decode lets the provider's plugin read the answer, as far as there is room for it. If the
// plugin fails or panics, the response fails.
func (a *attempt) decode(resp *http.Response, assembler *translate.Assembler, room *admission.Answer) {
	resp.Body = &answerBody{ReadCloser: resp.Body, assembler: assembler, room: room}
	defer func() {
		if v := recover(); v != nil {
			a.call.h.site.Logger.Error("a provider's plugin panicked", zap.String("target", a.target.Name()),
				zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
			assembler.Fail(plugins.Upstream("The provider's answer could not be read."))
		}
	}()
	err := a.target.Account.API.Decode(resp, assembler)
	refused, _ := errors.AsType[*plugins.Error](err) // there is no memory for the answer
	switch {
	case err == nil:
	case a.call.ctx.Err() != nil:
		assembler.Fail(&clientLeft)
	case refused != nil:
		assembler.Fail(refused)
	default:
		assembler.Fail(plugins.Upstream("The provider broke off its answer."))
	}
}

// translatedStream takes the events of an Assembler to the client. Events that came from the
// provider in one piece leave in one piece: they are sent before more is read.
type translatedStream struct {
	a        *attempt
	upstream http.Header
	events   *buffer
}

// Write implements io.Writer.
func (s *translatedStream) Write(events []byte) (int, error) {
	s.a.x.MarkFirstToken()
	s.events.data = append(s.events.data, events...)
	s.a.eventsSent++
	return len(events), s.a.client.err
}

// add adds the events that the assembler returned at its end.
func (s *translatedStream) add(events []byte) {
	s.events.data = append(s.events.data, events...)
	s.a.client.copy.Write(s.events.data)
	s.a.x.Record.ResponseBytes += int64(len(s.events.data))
}

// idle sends what is held back, and a ping if the client got nothing for long. It returns when
// to call idle again.
func (s *translatedStream) idle(assembler *translate.Assembler) time.Duration {
	if !assembler.Committed() {
		assembler.Release()
	}
	s.flush()
	return s.a.client.keepAlive(func() {
		assembler.Ping()
		s.send() // a ping is no part of the response
	})
}

// flush counts and sends the collected events.
func (s *translatedStream) flush() {
	s.add(nil)
	s.send()
}

func (s *translatedStream) send() {
	if len(s.events.data) > 0 {
		s.a.writeEvents(s.events.data, s.upstream)
		s.events.data = s.events.data[:0]
	}
}
