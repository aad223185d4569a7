package llmgateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/llmgateway/reasoning"
	"github.com/weirhq/weir/modules/llmgateway/secret"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// translation is the part that lanes share if the provider does not speak the client's dialect.
type translation struct {
	a       *attempt
	request *translate.Request // what is sent
	secrets *secret.Secrets    // seal reasoning
}

// prepareFunc is translate.Provider's Prepare, or translate.Counter's PrepareCount.
type prepareFunc func(context.Context, *translate.Request, translate.Target) (*http.Request, error)

// parsed returns the client's request, unless it refers to what the provider does not keep.
func (t *translation) parsed() (*translate.Request, error) {
	c := t.a.call
	if c.stored.Field != "" {
		return nil, t.a.stateNotFound()
	}
	return c.parsed()
}

// prepare returns the request to the provider. Its errors name the client's fields.
func (t *translation) prepare(parsed *translate.Request, prepare prepareFunc) (req *http.Request, err error) {
	if err = t.translate(parsed); err == nil {
		req, err = prepare(t.a.call.ctx, t.request, t.a.to)
		t.a.client.warnings = t.request.Names.Warnings(t.request.Warnings)
	}
	return req, parsed.Names.Error(err)
}

// translate makes the request that is sent, for the target.
func (t *translation) translate(parsed *translate.Request) (err error) {
	a, c := t.a, t.a.call
	request := parsed.Clone()
	request.Model = a.target.Model // the response names this model where the provider names no model
	request.Strict = c.controls.Strict
	request.State = c.continuation.state
	request.State.Stored = c.keeps()
	t.request = &request
	if t.secrets, err = c.h.secrets(); err != nil {
		return err
	}
	if err := request.Unseal(t.unseal); err != nil {
		return err
	}
	t.restoreReasoning(request.Turns)
	if a.loweredLimit() > 0 {
		request.MaxOutputTokens = plugins.Known(a.loweredLimit())
		request.Warnings = append(request.Warnings, a.loweredWarning())
	}
	if a.unpricedTier() {
		return request.Drop(translate.Warn, "service_tier", noPrice)
	}
	return nil
}

// answerBody is the body of an answer up to where the response was cut. The response in the
// assembler takes memory. So do the bytes that have come since the response last grew, because an
// event or an object is read whole.
type answerBody struct {
	io.ReadCloser
	assembler *translate.Assembler
	memory    *admission.Answer
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
	if refused := b.memory.Grow(int64(b.size + b.since)); refused != nil {
		return n, refused
	}
	return n, err
}

// decode lets the provider's plugin read the answer, as far as there is room for it. If the
// plugin fails or panics, the response fails.
func (t *translation) decode(resp *http.Response, assembler *translate.Assembler, memory *admission.Answer) {
	a := t.a
	resp.Body = &answerBody{ReadCloser: resp.Body, assembler: assembler, memory: memory}
	defer func() {
		if v := recover(); v != nil {
			a.call.h.site.Logger.Error("a provider's plugin panicked", zap.String("target", a.target.Name),
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
	if e := assembler.Failure(); e != nil {
		a.target.Account.HideAccount(e)
	}
}

// restoreReasoning gives the calls of earlier turns back the reasoning that led to them. The
// turns must be the attempt's own.
func (t *translation) restoreReasoning(turns []translate.Turn) {
	reasoning.Memory{
		Get:    func(callIDs []string) map[string]string { return t.a.call.memoryOfCaller().get(t.a.call.ctx, callIDs) },
		Unseal: t.unseal,
	}.Restore(turns)
}

// seal seals reasoning for the provider of the attempt.
func (t *translation) seal(content string) string {
	return t.secrets.Seal(t.a.target.Account.Provider, content)
}

// unseal is the reverse of seal.
func (t *translation) unseal(text string) (content string, ok bool) {
	if t.a.dropsReasoning {
		return "", false
	}
	return t.secrets.Open(t.a.target.Account.Provider, text)
}
