package llmlog

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// end finalises the record. It runs deferred and recovers nothing: a panic is
// how reverse_proxy cuts an answer off, and must reach the server.
func (x *exchange) end() {
	defer func() { x.repetition.lead.End() }() // if a panic passes
	if x.usage != nil {
		x.usage.Close()
	}
	if x.Record.TargetURL == "" {
		x.locate()
	}
	x.closeResponse(x.isWhole())
	if x.tunnel != nil {
		x.tunnel.Close(x.ctx.Err() != nil || x.writer.ClientLeft())
	}
	x.Record.ResponseBytes = x.writer.Sent()
	end := x.endState()
	x.commit(end)
	if x.addressed != nil {
		x.addressed.Close(x.isWhole() || x.failed)
	}
	x.settle(end)
	x.End(end)
	x.repetition.save(end)
	x.release()

	x.body.Detach()
	if x.upload != nil {
		x.upload.Free()
	}
	x.ahead.Release()
	x.reader.Free()
	x.response.Free()
	if x.observer != nil {
		x.observer.Free()
	}
	x.reader, x.observer, x.Answer = nil, nil, nil
	x.Kept = storage.Kept{}
	x.Close()
	x.cancel()
}

func (x *exchange) endState() storage.EndState {
	w := &x.writer
	left := x.ctx.Err() != nil || w.Err() != nil
	switch {
	case x.failed:
		return storage.Failed
	case left && (w.Status() == 0 || w.Status() == storage.StatusClientLeft):
		x.Record.Status = plugins.Known(storage.StatusClientLeft)
		return storage.ClientAborted
	case w.Status() == storage.StatusClientLeft && x.r.Context().Err() != nil:
		return storage.Failed // reverse_proxy's answer when the process ended before the provider answered
	case x.isWhole(), x.Info().Phase == plugins.Ended && w.Err() == nil && !w.Short(): // official clients hang up at the terminal event
		return x.ended()
	case x.observer != nil && x.Record.Stream && x.Info().ErrorType != "":
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

// ended returns the end state of an answer that has passed to its end.
func (x *exchange) ended() storage.EndState {
	if !x.tellsEnd() {
		return storage.Complete
	}
	switch outcome := observe.OutcomeOf(x.Info()); {
	case outcome == observe.Cut, outcome != observe.Ended && x.Record.Stream:
		return storage.UpstreamAborted
	}
	return storage.Complete
}

// tellsEnd reports whether the answer itself says whether it is complete: it is that of a model,
// and Weir has read all of it. An object that is an error is complete.
func (x *exchange) tellsEnd() bool {
	if x.observer == nil || x.response.Missed() || x.writer.Status() != http.StatusOK || x.writer.Tunnel() {
		return false
	}
	if x.Record.Stream {
		return observe.TellsEnd(x.Info().Dialect)
	}
	return x.Info().ErrorType == "" && observe.Finishes(x.Info().Dialect)
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
	x.Record.Status = plugins.Known(int64(status))
	x.readUnsent()
	e := apierror.Unanswered(status, upstreamOf(x.ctx), x.err)
	if errors.Is(x.err, money.ErrCredentials) {
		e.Code, e.Message = apierror.UpstreamAuth, "The provider does not accept the gateway's credentials."
	}
	refusal := recording.Refuse(x.operation().clientDialect(), e)
	x.Reply(refusal)
	if x.h.Errors == errorsPass {
		x.announce(x.writer.Header())
		return passedError(x.err, status)
	}
	x.h.site.Logger.Error("the provider gave no answer",
		zap.Stringer("id", x.Record.ID), zap.Int("status", status), zap.String("host", upstreamOf(x.ctx)), zap.Error(redact.Upstream(x.err)))
	_ = refusal.Write(&x.writer) // the client is gone
	return nil
}

// unsentTimeout bounds how long the request of a call that reached no provider is read.
const unsentTimeout = 5 * time.Second

// readUnsent reads the request of a call that no provider has read, so that its record says
// what was asked, of which model.
func (x *exchange) readUnsent() {
	if !hasBody(x.r) || x.r.Method == http.MethodConnect {
		return
	}
	connection := http.NewResponseController(&x.writer)
	if connection.SetReadDeadline(time.Now().Add(unsentTimeout)) != nil {
		return
	}
	if body, ok := x.body.Again(); ok {
		_, _ = io.Copy(io.Discard, io.LimitReader(body, int64(x.h.MaxBody))) // the record has what has come
	}
	_ = connection.SetReadDeadline(time.Time{}) // the server sets its own for the next request
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
