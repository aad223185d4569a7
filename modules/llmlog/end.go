package llmlog

import (
	"errors"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// end finalises the record. It runs deferred and recovers nothing: a panic is
// how reverse_proxy cuts an answer off, and must reach the server.
func (x *exchange) end() {
	defer func() { x.cache.lead.End() }() // if a panic passes
	if x.usage != nil {
		x.usage.Close()
	}
	if x.rec.Record.TargetURL == "" {
		x.locate()
	}
	x.answer.close(x.isWhole())
	if x.tunnel != nil {
		x.tunnel.Close(x.ctx.Err() != nil || x.writer.ClientLeft())
	}
	x.rec.Record.ResponseBytes = x.writer.Sent()
	end := x.endState()
	x.commit(end)
	if x.addresses != nil {
		x.addresses.Close(x.isWhole() || x.failed)
	}
	x.settle(end)
	x.rec.End(end)
	x.cache.save()
	x.release()

	x.request.free()
	x.answer.free()
	x.rec.Answer = nil
	x.rec.Kept = storage.Kept{}
	x.rec.Close()
	x.cancel()
}

func (x *exchange) endState() storage.EndState {
	w := &x.writer
	left := x.ctx.Err() != nil || w.Err() != nil
	switch {
	case x.failed:
		return storage.Failed
	case left && (w.Status() == 0 || w.Status() == storage.StatusClientLeft):
		x.rec.Record.Status = plugins.Known(storage.StatusClientLeft)
		return storage.ClientAborted
	case w.Status() == storage.StatusClientLeft && x.r.Context().Err() != nil:
		return storage.Failed // reverse_proxy's answer when the process ended before the provider answered
	case x.isWhole(), x.rec.Info().Phase == plugins.Ended && w.Err() == nil && !w.Short(): // official clients hang up at the terminal event
		return x.finalState()
	case x.answer.observer != nil && x.rec.Record.Stream && x.rec.Info().ErrorType != "":
		return storage.UpstreamAborted
	case left:
		return storage.ClientAborted
	case w.Status() == 0:
		return storage.Failed
	default:
		return storage.UpstreamAborted
	}
}

// isWhole reports whether all of the answer has passed.
func (x *exchange) isWhole() bool {
	return x.returned && x.err == nil && x.writer.Err() == nil && !x.writer.Short()
}

// finalState returns the end state of an answer that has passed to its end.
func (x *exchange) finalState() storage.EndState {
	if x.writer.Tunnel() {
		return storage.Complete
	}
	return x.answer.endState(x.writer.Status(), x.rec.Record.Stream)
}

// answerError answers an error that next returned without having written
// anything, the way the provider would put it. Left to Caddy, it would be logged
// with the request's headers, and credentials in them.
func (x *exchange) answerError() error {
	if x.writer.Status() != 0 {
		return x.err
	}
	status := errorStatus(x.err)
	if x.ctx.Err() != nil || status == storage.StatusClientLeft {
		x.writer.WriteHeader(storage.StatusClientLeft) // for the access log
		return nil                                     //nolint:nilerr // nobody is there to be told
	}
	x.failed = true
	x.rec.Record.Status = plugins.Known(int64(status))
	x.request.readUnsent(&x.writer, x.r)
	e := apierror.Unanswered(status, upstreamOf(x.ctx), x.err)
	if errors.Is(x.err, money.ErrCredentials) {
		e.Code, e.Message = apierror.UpstreamAuth, "The provider does not accept the gateway's credentials."
	}
	refusal := recording.Refuse(x.operation().clientDialect(), e)
	x.rec.Reply(refusal)
	if x.h.Errors == errorsPass {
		x.announce(x.writer.Header())
		return passedError(x.err, status)
	}
	x.h.site.Logger.Error("the provider gave no answer",
		zap.Stringer("id", x.rec.Record.ID), zap.Int("status", status), zap.String("host", upstreamOf(x.ctx)), zap.Error(redact.Upstream(x.err)))
	_ = refusal.Write(&x.writer) // the client is gone
	return nil
}

// passedError is the error for Caddy's error routes and log, which quote it.
func passedError(err error, status int) error {
	h, ok := errors.AsType[caddyhttp.HandlerError](err)
	if !ok {
		h = caddyhttp.Error(status, err)
	}
	h.Err = redact.Upstream(h.Err)
	return h
}

func errorStatus(err error) int {
	if h, ok := errors.AsType[caddyhttp.HandlerError](err); ok && h.StatusCode != 0 {
		return h.StatusCode
	}
	return apierror.UnansweredStatus(err)
}
