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
	to     translate.Target // target, as its provider's plugin takes it
	lane   lane
	x      *recording.Exchange
	req    *http.Request // to the provider
	within bool          // the attempt is a part of a call that has a bill of its own
	// forgets: the request goes without the reasoning of earlier turns, which the target has refused.
	forgets bool

	client   client
	extended bool // the conversation has the answer
	empty    bool // the provider refuses the account's calls until somebody pays

	failure *plugins.Error   // why the attempt failed, nil unless it did
	end     storage.EndState // how the attempt failed
}

// maxErrorTime bounds the wait for the body of an error. Nothing is generated in it,
// and another target may answer meanwhile.
const maxErrorTime = 5 * time.Second

// prepare makes the upstream request of the nth attempt, and sets aside what it
// may cost. Nothing has been sent. forgets is that of the attempt.
func (c *call) prepare(t routing.Target, n int, forgets bool) (*attempt, error) {
	c, err := c.variant(t.Choice)
	if err != nil {
		return nil, err
	}
	a := &attempt{candidate: c.at(t), x: c.exchange.Attempt(n), forgets: forgets}
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
	if encoding := resp.Header.Get("Content-Encoding"); encoding != "" { // which Send could not undo
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

// unreachable ends an attempt whose provider gave no answer.
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

// endRefused ends an attempt whose provider has answered an error.
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

// endBroken ends an attempt whose answer failed before a part of the answer reached the client.
func (a *attempt) endBroken(e *plugins.Error) (routing.Outcome, *plugins.Error) {
	if a.call.ctx.Err() != nil {
		return a.endAborted()
	}
	return a.fail(storage.UpstreamAborted, e, routing.Retry)
}

// endAborted ends an attempt whose client has left before any of the answer reached it. The model has
// read the request, and may have thought since.
func (a *attempt) endAborted() (routing.Outcome, *plugins.Error) {
	return a.failAs(storage.ClientAborted, true, &clientLeft, routing.Abort)
}

// endOutOfMemory ends an attempt if there is no memory for its answer. The provider charges for the answer.
func (a *attempt) endOutOfMemory(e *plugins.Error) (routing.Outcome, *plugins.Error) {
	return a.failAs(storage.UpstreamAborted, true, e, routing.Abort)
}

// fail ends an attempt that has not answered. Its error is the answer if no attempt follows.
func (a *attempt) fail(end storage.EndState, e *plugins.Error, outcome routing.Outcome) (routing.Outcome, *plugins.Error) {
	return a.failAs(end, false, e, outcome)
}

// failAs is fail. abandoned says that nobody waits for the provider, which works on.
func (a *attempt) failAs(end storage.EndState, abandoned bool, e *plugins.Error, outcome routing.Outcome) (routing.Outcome, *plugins.Error) {
	a.x.Record.ErrorType = e.ReportedType()
	a.x.Stop() // the time from here on belongs to other attempts
	a.settle(end, abandoned)
	a.failure, a.end = e, end
	return outcome, e
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
	a.x.Commit(end)
	a.settle(end, false)
	if a.x.Record.Stream {
		a.client.setCostHeaders(http.TrailerPrefix)
	}
	a.x.End(end)
	a.saveAnswer()
}
