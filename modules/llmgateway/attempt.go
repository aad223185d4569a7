package llmgateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/llmgateway/mcptools"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/coding"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// attempt is one try at one target. It has a record of its own, which becomes the
// call's record if the attempt answers. An attempt changes nothing in the call.
type attempt struct {
	call   *call
	target routing.Target
	x      *recording.Exchange
	req    *http.Request // to the provider

	request  *translate.Request // what is sent; nil if the provider speaks the client's dialect
	secrets  *secret.Secrets    // seal reasoning; nil if nothing is translated
	warnings []string           // about what is sent, if nothing is translated
	payment
	toolRounds

	client     client
	eventsSent int64                                                  // events of a translated stream, in this round
	answer     func(*http.Response) (routing.Outcome, *plugins.Error) // answers the client; nil for calls of models
	repeatable []byte                                                 // the answer as the client has it, nil if Weir's cache cannot give it again
	extended   bool                                                   // the conversation has the answer

	failure *plugins.Error   // why the attempt failed, nil unless it did
	end     storage.EndState // how the attempt failed
}

// payment is what bounds the cost of an attempt.
type payment struct {
	within  bool       // the attempt is a part of a call that has a bill of its own
	earlier bound.Used // what earlier rounds of tools have used
}

// maxError bounds what is kept of the body of an error, in bytes.
const maxError = 64 << 10

// maxDecoded bounds an answer that was compressed, in bytes.
const maxDecoded = 256 << 20

// maxErrorTime bounds the wait for the body of an error. Nothing is generated in it,
// and another target may answer meanwhile.
const maxErrorTime = 5 * time.Second

// prepare makes the upstream request of the nth attempt, and sets aside what it
// may cost. Nothing has been sent.
func (c *call) prepare(t routing.Target, n int) (*attempt, error) {
	c, err := c.variant(t.Choice)
	if err != nil {
		return nil, err
	}
	a := &attempt{call: c, target: t, x: c.exchange.Attempt(n), client: client{w: c.w}}
	a.x.TargetModel, a.x.Record.Provider, a.x.Record.Account = t.Model, t.Account.Provider, t.Account.Label
	a.x.Account, a.x.Target, a.x.Record.Arm = lineage.Hash(string(t.Account.ID[:])), lineageTarget(t), t.Arm()
	if err := c.allow(t); err != nil {
		return nil, err
	}
	if a.req, err = a.upstreamRequest(); err != nil {
		return nil, err
	}
	a.x.Record.InferenceGeo = observe.Geography(t.Account.Provider, a.req.URL.Host, a.req.URL.Path)
	if err := a.admit(); err != nil {
		return nil, err
	}
	if a.fitted() > 0 {
		if err := a.lower(); err != nil {
			a.x.Release()
			return nil, err
		}
	}
	a.x.Record.Path, a.x.Record.TargetURL = a.req.URL.Path, redact.URL(a.req.URL.String())
	return a, nil
}

// upstreamRequest returns the request to the provider: the client's bytes if the provider
// speaks the client's dialect, else a translation.
func (a *attempt) upstreamRequest() (*http.Request, error) {
	c, account := a.call, a.target.Account
	if c.route.native {
		return a.endpointRequest()
	}
	t := a.translateTarget()
	if native, ok := account.API.(translate.Native); ok && (!c.compacts || c.speaks(a.target, plugins.Compaction)) {
		body, err := a.nativeBody()
		if err != nil {
			return nil, err
		}
		req, err := native.PrepareNative(c.ctx, c.dialect, c.object(body), t)
		if err == nil {
			a.passRequestHeaders(req)
		}
		if !errors.Is(err, errors.ErrUnsupported) {
			return req, err
		}
	}
	if c.api.Parse == nil {
		return nil, noEndpoint(a.target)
	}
	if c.stored.Field != "" {
		return nil, c.stateNotFound(account.Label)
	}
	parsed, err := c.parsed()
	if err == nil && c.callsMCP(account.API, parsed) {
		if c.mcp == nil {
			c.mcp = mcptools.Open(c.ctx, c.sent, c.h.MCP, c.h.MaxTools, c.memory())
		}
		a.mcp = c.mcp
		parsed, err = a.mcp.Request()
	}
	if err != nil {
		return nil, err
	}
	prepare := account.API.Prepare
	if c.dialect == plugins.InputTokens {
		counter, ok := account.API.(translate.Counter)
		if !ok {
			return nil, noEndpoint(a.target)
		}
		prepare = counter.PrepareCount
	}
	req, err := a.translated(parsed, t, prepare)
	return req, parsed.Names.Error(err)
}

// translateTarget is the target as its provider's plugin takes it.
func (a *attempt) translateTarget() translate.Target {
	return a.target.Account.Target(a.target.Model, a.target.Listed)
}

// prepareFunc is translate.Provider's Prepare, or translate.Counter's PrepareCount.
type prepareFunc func(context.Context, *translate.Request, translate.Target) (*http.Request, error)

// translated is the client's request in the format of a provider that does not speak
// its dialect.
func (a *attempt) translated(parsed *translate.Request, t translate.Target, prepare prepareFunc) (req *http.Request, err error) {
	c := a.call
	request := *parsed
	request.Model = t.Model // the response names this model where the provider names no model
	request.Strict = c.controls.Strict
	request.State = c.state
	request.State.Stored = c.keeps()
	a.request = &request
	if a.secrets, err = c.h.secrets(); err != nil {
		return nil, err
	}
	if err := request.Unseal(a.unseal); err != nil {
		return nil, err
	}
	a.restoreReasoning(request.Turns)
	if a.fitted() > 0 {
		request.MaxOutputTokens = plugins.Known(a.fitted())
		request.Warnings = append(slices.Clip(request.Warnings), a.lowered())
	}
	if a.unpricedTier() {
		if err := request.Drop(translate.Warn, "service_tier", noPrice); err != nil {
			return nil, err
		}
	}
	a.rounds = request
	return prepare(c.ctx, a.request, t)
}

// errFirstByte cancels an attempt whose provider does not begin to answer.
var errFirstByte = errors.New("the provider sent no header in time")

// send makes the attempt. It answers the client, or returns why it did not and
// what may follow. firstByte bounds the time until the provider's header.
func (a *attempt) send(firstByte time.Duration) (routing.Outcome, *plugins.Error) {
	defer a.x.Release()
	ctx, cancel := context.WithCancelCause(a.call.ctx)
	defer cancel(nil)
	a.req = a.req.WithContext(ctx)
	timer := time.AfterFunc(firstByte, func() { cancel(errFirstByte) })
	resp, err := a.x.Bill.Send(a.req)
	timer.Stop()
	if err != nil {
		return a.unreachable(ctx, err)
	}
	if refuses(resp.StatusCode) {
		timer.Reset(maxErrorTime)
		defer timer.Stop()
	}
	return a.receive(resp)
}

func (a *attempt) receive(resp *http.Response) (routing.Outcome, *plugins.Error) {
	defer resp.Body.Close()
	a.x.Record.Status = plugins.Known(int64(resp.StatusCode))
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" { // some providers compress what nobody asked them to
		decoded, known := coding.NewReader(encoding, resp.Body, maxDecoded) //nolint:forbidigo // intake is for what clients send
		if !known {
			return a.broken(plugins.Upstream("The provider answered with the Content-Encoding %q, which is not known.", encoding))
		}
		defer decoded.Close()
		resp.Body = struct {
			io.Reader
			io.Closer
		}{decoded, resp.Body}
		resp.Header.Del("Content-Encoding")
		resp.ContentLength = -1
	}
	switch {
	case a.call.dialect == plugins.Realtime && resp.StatusCode < http.StatusMultipleChoices:
		return a.passSocket(resp)
	case refuses(resp.StatusCode):
		return a.refused(resp)
	}
	defer a.client.copy.Free()
	switch {
	case a.answer != nil:
		return a.answer(resp)
	case a.request != nil:
		return a.translate(resp)
	}
	return a.pass(resp)
}

// unreachable ends an attempt whose provider gave no answer.
func (a *attempt) unreachable(ctx context.Context, err error) (routing.Outcome, *plugins.Error) {
	if a.call.ctx.Err() != nil {
		a.x.Record.Status = plugins.Known(recording.StatusClientLeft)
		return a.left()
	}
	late := errors.Is(context.Cause(ctx), errFirstByte)
	e, outcome := a.unreached(late, err)
	a.x.Record.Status = plugins.Known(int64(e.Status))
	keepAnswer(a.x, a.call.dialect, e)
	if late {
		a.x.Stop()
		a.settleAs(storage.Failed, true)
	}
	return a.fail(storage.Failed, e, outcome)
}

// refused ends an attempt whose provider has answered an error.
func (a *attempt) refused(resp *http.Response) (routing.Outcome, *plugins.Error) {
	if resp.StatusCode < 400 { // a redirect or an upgrade: its body is empty or endless
		e, outcome := a.refusal(resp)
		return a.fail(storage.Complete, e, outcome)
	}
	r := &a.x.Record
	var kept bytes.Buffer
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &kept), resp.Body}
	e, outcome := a.refusal(resp)
	if e.Code == apierror.UpstreamAuth { // the answer may name the key
		a.x.Refusal = e
	} else {
		a.x.Kept.Response(r, storage.Body{Type: resp.Header.Get("Content-Type"), Data: kept.Bytes()}, maxError, false)
	}
	r.ResponseBytes = int64(kept.Len())
	return a.fail(storage.Complete, e, outcome)
}

// broken ends an attempt whose answer failed before a part of the answer reached the client.
func (a *attempt) broken(e *plugins.Error) (routing.Outcome, *plugins.Error) {
	if a.call.ctx.Err() != nil {
		return a.left()
	}
	return a.fail(storage.UpstreamAborted, e, routing.Retry)
}

// left ends an attempt whose client has left before any of the answer reached it. The model has
// read the request, and may have thought since.
func (a *attempt) left() (routing.Outcome, *plugins.Error) {
	outcome, e := a.fail(storage.ClientAborted, &clientLeft, routing.Abort)
	if a.x.Bill.Open() {
		a.settleAs(storage.ClientAborted, true)
	}
	return outcome, e
}

// noRoom ends an attempt if there is no memory for its answer. The provider charges for the answer.
func (a *attempt) noRoom(e *plugins.Error) (routing.Outcome, *plugins.Error) {
	a.x.Stop()
	a.settleAs(storage.UpstreamAborted, true)
	return a.fail(storage.UpstreamAborted, e, routing.Abort)
}

// fail ends an attempt that has not answered. Its error is the answer if no attempt follows.
func (a *attempt) fail(end storage.EndState, e *plugins.Error, outcome routing.Outcome) (routing.Outcome, *plugins.Error) {
	a.x.Record.ErrorType = e.Type
	a.x.Stop() // the time from here on belongs to other attempts
	a.failure, a.end = e, end
	return outcome, e
}

// commit brings the record of an attempt that answers into the journal, with the request.
func (a *attempt) commit(end storage.EndState) {
	a.x.RequestOf(a.call.exchange)
	a.x.Commit(end)
}

// finish ends an attempt that answered. whole reports that the answer is complete.
func (a *attempt) finish(whole bool) {
	end := storage.UpstreamAborted
	switch {
	case whole && a.client.err == nil:
		end = storage.Complete
	case a.client.err != nil || a.call.ctx.Err() != nil:
		end = storage.ClientAborted
	}
	a.commit(end)
	a.settle(end)
	if a.x.Record.Stream {
		a.setCostHeaders(http.TrailerPrefix)
	}
	a.x.End(end)
	a.saveAnswer()
}
