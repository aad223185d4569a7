package llmgateway

import (
	"context"
	"net/http"
	"time"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/mcptools"
	"github.com/weirhq/weir/modules/llmgateway/reasoning"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// conversation is the lane that translates a call, and the provider's answer.
type conversation struct {
	translation
	toolRounds
}

// Request implements lane.
func (s *conversation) Request() (*http.Request, error) {
	a, c := s.a, s.a.call
	parsed, err := s.parsed()
	if err == nil && s.callsMCP(parsed) {
		if c.mcp == nil {
			c.mcp = mcptools.Open(c.ctx, c.input.sent, c.h.MCP, c.h.MaxTools, c.memory())
		}
		s.mcp = c.mcp
		parsed, err = s.mcp.Request()
	}
	if err != nil {
		return nil, err
	}
	return s.prepare(parsed, func(ctx context.Context, request *translate.Request, t translate.Target) (*http.Request, error) {
		s.rounds = request.Clone() // before the provider's plugin changes it
		return a.target.Account.API.Prepare(ctx, request, t)
	})
}

// Bound implements bounder. A translation may make the model think, and a stream with tools of MCP
// servers goes on after each of them.
func (s *conversation) Bound(of *bound.Call) {
	c := s.a.call
	of.Hidden = s.mcp != nil || of.Model != nil && of.Model.Reasoning
	if s.mcp != nil {
		of.Read = func() *bound.Demand {
			d := bound.Of(c.dialect, c.input.object(c.input.sent), c.h.MCP.Allow) // the request has no tools and results of MCP servers
			return &d
		}
	}
}

// Answer implements lane. It answers what the Assembler makes of the provider's answer.
func (s *conversation) Answer(resp *http.Response) (routing.Outcome, *plugins.Error) {
	a := s.a
	out := &translatedStream{a: a, upstream: resp.Header, events: buffers.Get().(*buffer)}
	defer out.events.free()
	options := translate.Options{Seal: s.seal, Encoder: a.call.input.api.Encoder(s.request), Cut: int(a.cutBytes())}
	if provider := a.target.Account.Provider; plugins.IsVendor(provider) { // who states a cost is believed in every lane
		options.Provider = provider
	}
	if s.mcp != nil {
		options.Items = s.mcp.Items
	}
	if a.call.dialect == plugins.Responses {
		options.ID = history.IDs(a.x.Record.ID)
	}
	assembler := translate.NewAssembler(s.request, out, options)
	a.x.Answer = assembler
	if a.x.Record.Stream = s.request.Stream; a.x.Record.Stream && a.call.cache.lead != nil {
		a.client.copy.Keep(int64(a.call.h.MaxBody), 0)
	}
	memory := a.call.answerMemory(resp)
	defer memory.Release()

	s.read(resp, out, assembler, memory)
	a.x.Cut = assembler.Cut()
	if s.mcp != nil {
		s.useTools(out, assembler, memory)
	}
	if e := assembler.Failure(); e != nil && !assembler.Committed() {
		if memory.Refused() {
			return a.endOutOfMemory(e)
		}
		if a.call.ctx.Err() != nil {
			return a.endAborted()
		}
		e, outcome := a.blame(e, http.StatusOK)
		if s.round > 0 { // an answer that was charged
			outcome = routing.Abort
		}
		return a.fail(storage.UpstreamAborted, e, outcome)
	}
	rest := assembler.End()
	complete := assembler.Failure() == nil
	if !a.x.Record.ResponseOmitted {
		text, callIDs := reasoning.Output(assembler.Outputs())
		a.call.memoryOfCaller().put(a.call.ctx, text, callIDs)
	}
	if !s.request.Stream {
		a.extend(rest)
		a.client.writeObject(rest, jsonType, resp.Header)
		a.finish(complete)
		return routing.Answered, nil
	}
	out.add(rest)
	if a.call.cache.lead != nil { // others get the events
		a.client.copy.contentType = "text/event-stream"
		a.client.keepCopy()
		a.client.repeatable = a.client.copy.Bytes()
	} else {
		a.client.keepResponse(assembler.Response(), jsonType)
	}
	end := storage.Complete
	if !complete {
		end = storage.UpstreamAborted
	}
	a.extend(assembler.Response())
	a.x.Commit(end) // before the client has the terminal event
	out.send()
	a.finish(complete)
	return routing.Answered, nil
}

// read reads a provider's answer, and keeps the client's connection alive meanwhile.
func (s *conversation) read(resp *http.Response, out *translatedStream, assembler *translate.Assembler, memory *admission.Answer) {
	defer resp.Body.Close()
	if s.request.Stream {
		body := newIdleReader(resp.Body, out.flush, func() time.Duration { return out.idle(assembler) })
		defer body.stop()
		resp.Body = body
	}
	s.decode(resp, assembler, memory)
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
	s.a.client.events++
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
		s.a.client.writeEvents(s.events.data, s.upstream)
		s.events.data = s.events.data[:0]
	}
}
