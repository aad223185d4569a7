package llmgateway

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/mcptools"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// maxRounds bounds how often the model of one call gets results of MCP tools. In the last round
// the model may call no tool.
const maxRounds = 32

// callsMCP reports whether the gateway has to call MCP servers for the target.
func (s *conversation) callsMCP(parsed *translate.Request) bool {
	c := s.a.call
	if len(c.h.MCP) == 0 || c.dialect != plugins.Responses {
		return false
	}
	if caller, ok := s.a.target.Account.API.(translate.MCPCaller); ok && caller.CallsMCP(parsed) {
		return false
	}
	return slices.ContainsFunc(parsed.Tools, func(t translate.Tool) bool { return c.h.MCP.Allow(gjson.ParseBytes(t.Raw)) })
}

// toolRounds are the requests that give the model the results of MCP tools.
type toolRounds struct {
	mcp     *mcptools.Tools   // the tools that the gateway calls, nil if there are none
	rounds  translate.Request // the next request, with the conversation so far
	round   int               // how many requests with results were sent
	earlier bound.Used        // what the earlier rounds have used
}

// useTools calls the MCP tools that the model has asked for, and gives the model the results,
// until it calls no more tools or the client has to answer a call. The assembler has the first
// round. If a round fails, the response fails: tools have had their effects, so no other target
// may begin again.
func (s *conversation) useTools(out *translatedStream, assembler *translate.Assembler, memory *admission.Answer) {
	a := s.a
	for {
		outputs := assembler.MCPCalls()
		if len(outputs) == 0 {
			return
		}
		a.x.Commit(storage.Interrupted) // what a crash leaves is paid
		a.settle(storage.Interrupted, false)
		a.x.Commit(storage.Interrupted)
		s.earlier = bound.Used{Cost: a.x.Record.Cost, Usage: a.x.Record.Usage}
		a.x.Release()
		s.round++
		a.client.events = 0
		if s.round > maxRounds { // it was to call none
			return
		}
		s.callTools(out, assembler, outputs)
		items, ok := assembler.Round()
		if !ok || assembler.Failure() != nil {
			return
		}
		resp, e := s.nextRound(out, assembler, items)
		if e != nil {
			if e == &clientLeft { // the model works on at the round
				a.x.NextRound()
				assembler.NextRound()
				a.settle(storage.ClientAborted, true)
			}
			a.x.Release()
			assembler.Fail(e)
			return
		}
		a.x.NextRound()
		assembler.NextRound()
		s.read(resp, out, assembler, memory)
	}
}

// callTools calls tools, and ends each item when its result is there.
func (s *conversation) callTools(out *translatedStream, assembler *translate.Assembler, outputs []*translate.Output) {
	var calls []*mcptools.Call
	items := make(map[*mcptools.Call]*translate.Output)
	for _, o := range outputs {
		c := &mcptools.Call{Server: o.Namespace, Tool: o.Name, Arguments: o.Arguments()}
		calls, items[c] = append(calls, c), o
	}
	out.flush()
	done := s.mcp.Start(calls)
	for range calls {
		c := await(done, out, assembler)
		assembler.MCPResult(items[c], c.Output, c.Failure)
		out.flush()
	}
	if s.a.call.ctx.Err() != nil {
		assembler.Fail(&clientLeft)
	}
}

// await receives a value. Meanwhile it keeps the client's connection alive.
func await[T any](from <-chan T, out *translatedStream, assembler *translate.Assembler) T {
	idle := time.NewTimer(maxHold)
	defer idle.Stop()
	for {
		select {
		case v := <-from:
			return v
		case <-idle.C:
			idle.Reset(out.idle(assembler))
		}
	}
}

// nextRound sends the model the items that it and its tools have added.
func (s *conversation) nextRound(out *translatedStream, assembler *translate.Assembler, items []json.RawMessage) (*http.Response, *plugins.Error) {
	a := s.a
	if err := s.rounds.Continue(items, s.unseal); err != nil {
		return nil, apierror.Of(err)
	}
	request := s.rounds.Clone() // Prepare may change it
	if s.round == maxRounds || !s.mcp.MayCall() {
		request.ToolChoice = translate.ToolChoice{Mode: "none"}
	}
	var err error
	if a.req, err = a.target.Account.API.Prepare(a.req.Context(), &request, a.to); err == nil {
		err = a.bill(a.bound(), bound.Limits{}, bound.Limits{}) // the bill of the round before has ended
	}
	if err != nil {
		return nil, apierror.Of(err)
	}
	a.x.Bill.Earlier = s.earlier
	deadline := time.Now().Add(a.call.h.policy.TryDuration)
	for tries := 1; ; tries++ {
		resp, e, outcome := s.sendRound(out, assembler)
		if e == nil {
			return resp, nil
		}
		pause, ok := a.call.h.policy.Pause(tries, e.RetryAfter, deadline)
		if outcome != routing.Retry || !ok || !routing.Sleep(a.call.ctx, pause) {
			return nil, e
		}
	}
}

func (s *conversation) sendRound(out *translatedStream, assembler *translate.Assembler) (*http.Response, *plugins.Error, routing.Outcome) {
	a := s.a
	ctx, cancel := context.WithCancelCause(a.req.Context())
	req := a.req.Clone(ctx)
	if a.req.GetBody != nil {
		var err error
		if req.Body, err = a.req.GetBody(); err != nil { //nolint:forbidigo // the request to the provider
			cancel(nil)
			return nil, apierror.Of(err), routing.Abort
		}
	}
	var resp *http.Response
	var err error
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		resp, err = a.x.Bill.Send(req) //nolint:bodyclose // read closes it, or the refusal below
	}()
	await(answered, out, assembler)
	if err != nil {
		cancel(nil)
		e, outcome := a.unreached(false, err)
		return nil, e, outcome
	}
	resp.Body = cancelingBody{resp.Body, cancel}
	if !refuses(resp.StatusCode) {
		return resp, nil, routing.Answered
	}
	defer resp.Body.Close()
	timer := time.AfterFunc(maxErrorTime, func() { cancel(errFirstByte) })
	defer timer.Stop()
	e, outcome := a.refusal(resp)
	return nil, e, outcome
}
