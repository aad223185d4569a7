package llmgateway

import (
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// translate reads a provider's own dialect, and answers what the Assembler makes
// of it.
func (a *attempt) translate(resp *http.Response) *failure {
	relay := &relay{a: a, upstream: resp.Header, events: buffers.Get().(*buffer)}
	defer relay.events.free()
	assembler := translate.NewAssembler(a.prompt, relay, translate.Options{Seal: a.seal})
	a.seen = assembler.Info
	a.record.Stream = a.prompt.Stream

	if a.prompt.Stream {
		body := watchPauses(resp.Body, func() time.Duration {
			if !assembler.Committed() {
				assembler.Release()
			}
			relay.pass()
			return a.keepAlive(func() {
				assembler.Ping()
				relay.flush()
			})
		})
		defer body.end()
		relay.ReadCloser = body
		resp.Body = relay
	}
	a.decode(resp, assembler)

	if e := assembler.Failure(); e != nil && !assembler.Committed() {
		return a.broken(e)
	}
	whole := assembler.Failure() == nil
	rest := assembler.End()
	a.remember(assembler.Response())
	if !a.prompt.Stream {
		a.record.ResponseBytes = int64(len(rest))
		a.object(rest, resp.Header)
		a.finish(whole)
		return nil
	}
	a.answer()
	a.keep(assembler.Response())
	a.record.ResponseBytes += int64(len(relay.events.data) + len(rest))
	relay.events.data = append(relay.events.data, rest...)
	if !whole {
		a.finish(false)
		relay.flush()
		return nil
	}
	a.commit()
	relay.flush()
	a.finish(true)
	return nil
}

// decode lets the provider's plugin read the answer. Whatever becomes of it,
// the response can be ended.
func (a *attempt) decode(resp *http.Response, assembler *translate.Assembler) {
	defer func() {
		if v := recover(); v != nil {
			a.h.logger.Error("a provider's plugin panicked", zap.String("target", a.target.name()),
				zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
			assembler.Fail(plugins.Upstream("The provider's answer could not be read."))
		}
	}()
	switch err := a.target.account.API.Decode(resp, assembler); {
	case err == nil:
	case a.ctx.Err() != nil:
		assembler.Fail(&clientLeft)
	default:
		assembler.Fail(plugins.Upstream("The provider broke off its answer."))
	}
}

// relay is a provider's body on one side, and takes the events that an Assembler
// makes of it to the client on the other: before more is read, so that what came
// in one piece leaves in one.
type relay struct {
	io.ReadCloser
	a        *attempt
	upstream http.Header
	events   *buffer
}

// Read implements io.Reader.
func (r *relay) Read(p []byte) (int, error) {
	r.pass()
	return r.ReadCloser.Read(p)
}

// pass sends the events of the response that have come together.
func (r *relay) pass() {
	r.a.record.ResponseBytes += int64(len(r.events.data))
	r.flush()
}

// Write implements io.Writer.
func (r *relay) Write(events []byte) (int, error) {
	r.a.hear()
	r.events.data = append(r.events.data, events...)
	return len(events), r.a.gone
}

func (r *relay) flush() {
	if b := r.events; len(b.data) > 0 {
		r.a.startStream(r.upstream)
		r.a.write(b.data)
		b.data = b.data[:0]
	}
}
