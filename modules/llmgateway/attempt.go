package llmgateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/cache"
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// attempt is one try at one target. It has a record of its own, which becomes the
// call's record if the attempt answers. An attempt changes nothing in the call.
type attempt struct {
	candidate
	to   translate.Target // the target in the form that its provider's plugin takes
	lane lane
	x    *recording.Exchange
	req  *http.Request // to the provider
	// nested is true for one response of a WebSocket session. The session has a bill of its own.
	nested bool
	// dropsReasoning is true if the target refused the reasoning of earlier turns: it is left out.
	dropsReasoning bool

	client   client
	extended bool // the answer was added to the conversation
	empty    bool // the account is empty (see plugins.Error.EmptyAccount)

	failure *plugins.Error   // nil unless the attempt failed
	end     storage.EndState // how it failed; unset while failure is nil
}

// maxErrorTime bounds the wait for the body of an error. It is short, because the provider generates
// nothing, and the next target can only be tried afterwards.
const maxErrorTime = 5 * time.Second

// prepare makes the upstream request of the nth attempt, and sets aside what it may cost. It sends
// nothing. dropsReasoning becomes the attempt's field.
func (c *call) prepare(t routing.Target, n int, dropsReasoning bool) (*attempt, error) {
	c, err := c.variant(t.Choice)
	if err != nil {
		return nil, err
	}
	a := &attempt{candidate: c.at(t), x: c.exchange.Attempt(n), dropsReasoning: dropsReasoning}
	a.x.TargetModel, a.x.Record.Provider, a.x.Record.Account = t.Model, t.Account.Provider, t.Account.Label
	a.x.Account, a.x.Target, a.x.Record.Arm = lineage.Hash(string(t.Account.ID[:])), t.Lineage, t.Arm()
	if err := a.allow(); err != nil {
		return nil, err
	}
	if err := a.takeLane(); err != nil {
		return nil, err
	}
	a.x.Record.InferenceGeo = observe.Geography(t.Account.Provider, a.req.URL.Host, a.req.URL.Path)
	if err := a.admit(); err != nil {
		return nil, err
	}
	if a.loweredLimit() > 0 {
		if err := a.takeLane(); err != nil { // again, with the limit that the credits cover
			a.x.Release()
			return nil, err
		}
	}
	a.x.Record.Path, a.x.Record.TargetURL = a.req.URL.Path, redact.URL(a.req.URL.String())
	return a, nil
}

// errFirstByte cancels an attempt if its provider sends no header in time.
var errFirstByte = errors.New("the provider sent no header in time")

// send sends the request. It answers the client, or returns why it could not and what may follow.
// firstByte bounds the time until the provider's header.
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
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" { // Send undoes the known ones
		return a.endBroken(plugins.Upstream("The provider answered with the Content-Encoding %q, which is not known.", encoding))
	}
	if refuses(resp.StatusCode) && !(a.call.dialect == plugins.Realtime && resp.StatusCode < http.StatusMultipleChoices) {
		return a.endRefused(resp)
	}
	if cache.Forbids(resp.Header) && a.isFirst() {
		a.call.cache.lead.Withhold()
	}
	defer a.client.copy.Free()
	return a.lane.Answer(resp)
}

// unreachable ends an attempt that got no response from its provider.
func (a *attempt) unreachable(ctx context.Context, err error) (routing.Outcome, *plugins.Error) {
	if a.call.ctx.Err() != nil {
		a.x.Record.Status = plugins.Known(storage.StatusClientLeft)
		return a.endAborted()
	}
	late := errors.Is(context.Cause(ctx), errFirstByte)
	e, outcome := a.unreached(late, err)
	reply := recording.Refuse(a.call.dialect, e) // a client in the background reads it from the record
	a.x.Reply(reply)
	a.x.Keep(reply, recording.MaxError)
	return a.failAs(storage.Failed, late, e, outcome)
}

// endRefused ends an attempt that the provider answered with an error.
func (a *attempt) endRefused(resp *http.Response) (routing.Outcome, *plugins.Error) {
	if resp.StatusCode < 400 { // a redirect or an upgrade: its body is empty or endless
		e, outcome := a.refusal(resp)
		return a.fail(storage.Complete, e, outcome)
	}
	r := &a.x.Record
	var body bytes.Buffer
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(resp.Body, &body), resp.Body}
	e, outcome := a.refusal(resp)
	if e.Code == apierror.UpstreamAuth { // the answer may name the key
		a.x.Refusal = e
	} else {
		a.x.Kept.Response(r, storage.Body{Type: resp.Header.Get("Content-Type"), Data: body.Bytes()}, recording.MaxError, false)
	}
	r.ResponseBytes = int64(body.Len())
	return a.fail(storage.Complete, e, outcome)
}

// endBroken ends an attempt if its answer failed before any of it reached the client.
func (a *attempt) endBroken(e *plugins.Error) (routing.Outcome, *plugins.Error) {
	if a.call.ctx.Err() != nil {
		return a.endAborted()
	}
	return a.fail(storage.UpstreamAborted, e, routing.Retry)
}

// endAborted ends an attempt if the client left before any of the answer reached it. The provider may
// charge for the input, and for the reasoning so far.
func (a *attempt) endAborted() (routing.Outcome, *plugins.Error) {
	return a.failAs(storage.ClientAborted, true, &clientLeft, routing.Abort)
}

// endOutOfMemory ends an attempt if there is no memory for its answer. The provider still charges for it.
func (a *attempt) endOutOfMemory(e *plugins.Error) (routing.Outcome, *plugins.Error) {
	return a.failAs(storage.UpstreamAborted, true, e, routing.Abort)
}

// fail ends an attempt that has not answered. Its error is the answer if no attempt follows.
func (a *attempt) fail(end storage.EndState, e *plugins.Error, outcome routing.Outcome) (routing.Outcome, *plugins.Error) {
	return a.failAs(end, false, e, outcome)
}

// failAs is fail for a provider that may still work on the request and charge for it, if abandoned is
// true.
func (a *attempt) failAs(end storage.EndState, abandoned bool, e *plugins.Error, outcome routing.Outcome) (routing.Outcome, *plugins.Error) {
	a.x.Record.ErrorType = e.ReportedType()
	a.x.Stop() // the time from here on belongs to other attempts
	a.settle(end, abandoned)
	a.failure, a.end = e, end
	return outcome, e
}

// finish ends an attempt that answered. complete is false if the answer broke off.
func (a *attempt) finish(complete bool) {
	end := storage.UpstreamAborted
	switch {
	case complete && a.client.err == nil:
		end = storage.Complete
	case a.client.err != nil || a.call.ctx.Err() != nil:
		end = storage.ClientAborted
	}
	a.x.Commit(end)
	a.settle(end, false)
	if a.x.Record.Stream {
		a.client.setCostHeaders(http.TrailerPrefix)
	}
	a.x.End(end)
	a.saveAnswer()
}
