package llmgateway

import (
	"fmt"
	"net/http"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
)

// translate reads a provider's own dialect, and answers what the Assembler makes
// of it.
func (a *attempt) translate(resp *http.Response) *failure {
	sink := &sink{a, resp.Header}
	assembler := plugins.NewAssembler(a.prompt, sink, plugins.Options{Seal: a.seal})
	a.seen = assembler.Extraction
	a.record.Stream = a.prompt.Stream

	if a.prompt.Stream {
		body := watchPauses(resp.Body, func() time.Duration {
			if !assembler.Committed() {
				assembler.Release()
			}
			return a.keepAlive(assembler.Ping)
		})
		defer body.end()
		resp.Body = body
	}
	a.decode(resp, assembler)

	if e := assembler.Failure(); e != nil && !a.begun {
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
	a.record.ResponseBytes += int64(len(rest))
	a.keep(assembler.Response())
	a.startStream(resp.Header) // where nothing was said, the events that open it come only now
	if !whole {
		a.finish(false)
		a.write(rest)
		return nil
	}
	a.commit()
	a.write(rest)
	a.finish(true)
	return nil
}

// decode lets the provider's plugin read the answer. Whatever becomes of it,
// the response can be ended.
func (a *attempt) decode(resp *http.Response, assembler *plugins.Assembler) {
	defer func() {
		if v := recover(); v != nil {
			a.h.logger.Error("a provider's plugin panicked", zap.String("target", a.target.name()),
				zap.String("panic", fmt.Sprint(v)), zap.ByteString("stack", debug.Stack()))
			assembler.Fail(plugins.Upstream("The provider's answer could not be read."))
		}
	}()
	if err := a.target.account.API.Decode(resp, assembler); err != nil {
		assembler.Fail(plugins.Upstream("The provider broke off its answer."))
	}
}

// sink takes the events of an Assembler to the client.
type sink struct {
	a        *attempt
	upstream http.Header
}

// Write implements io.Writer.
func (s *sink) Write(events []byte) (int, error) {
	s.a.startStream(s.upstream)
	s.a.record.ResponseBytes += int64(len(events))
	s.a.write(events)
	return len(events), s.a.gone
}
