package llmgateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// translatedEndpoint is the lane of an endpoint that the provider has in a format of its own.
type translatedEndpoint struct {
	endpoint
	call *translate.EndpointCall
}

// Request implements lane.
func (e *translatedEndpoint) Request() (*http.Request, error) {
	a, c := e.a, e.a.call
	api, ok := a.target.Account.API.(translate.EndpointTranslator)
	if !ok || c.input.form != nil {
		return nil, errors.ErrUnsupported
	}
	var err error
	if e.call, err = api.TranslateEndpoint(c.ctx, c.dialect, c.input.object(c.input.sent), a.to); err != nil {
		return nil, err
	}
	if len(e.call.Warnings) > 0 && c.controls.Strict {
		field, _, _ := strings.Cut(e.call.Warnings[0], ":")
		return nil, plugins.Unsupported(field, "Unsupported parameter: '%s' is not supported by the provider.", field)
	}
	req, err := e.call.Request(0)
	if err != nil {
		return nil, err
	}
	a.client.warnings = append(a.client.warnings, e.call.Warnings...)
	e.passRequestHeaders(req)
	return req, nil
}

// Answer implements lane. The provider charges for each request that it has answered, so that no
// other target follows once there is an answer.
func (e *translatedEndpoint) Answer(resp *http.Response) (routing.Outcome, *plugins.Error) {
	a := e.a
	observer := observe.New(a.call.dialect, a.x.Record.Provider, nil)
	a.x.Answer = observer
	memory := a.call.answerMemory(resp)
	defer memory.Release()
	from := new(struct{ io.Reader })
	bounded := memory.Reader(from) // counts the bytes of all answers
	var answers []translate.EndpointAnswer
	for {
		from.Reader = resp.Body
		body, err := translate.ReadAll(bounded, resp.ContentLength)
		resp.Body.Close()
		if refused, ok := errors.AsType[*plugins.Error](err); ok {
			return a.endOutOfMemory(refused)
		}
		if err != nil {
			return e.partly(observer, answers, true, plugins.Upstream("The provider broke off its answer."))
		}
		if !plugins.ValidJSON(body) {
			return e.partly(observer, answers, true, plugins.Upstream("The provider answered with something that is no response."))
		}
		answers = append(answers, translate.EndpointAnswer{Header: resp.Header, Body: body})
		if len(answers) == e.call.Count {
			break
		}
		var failure *plugins.Error
		var begun bool
		if resp, begun, failure = e.nextWithRetries(len(answers)); failure != nil {
			return e.partly(observer, answers, begun, failure)
		}
	}
	body := e.call.Read(answers)
	if body == nil {
		return e.partly(observer, answers[:len(answers)-1], true, plugins.Upstream("The provider answered with something that is no response."))
	}
	observer.Write(body)
	observer.Close()
	if a.call.dialect == plugins.Embeddings {
		body = packEmbeddings(a.call.input.body, body)
	}
	a.client.writeObject(body, jsonType, resp.Header)
	a.finish(true)
	a.x.Answer = nil
	observer.Free()
	return routing.Answered, nil
}

// nextWithRetries sends the ith request again as the first one is: the answers before it are paid
// for, and of no use alone.
func (e *translatedEndpoint) nextWithRetries(i int) (resp *http.Response, begun bool, failure *plugins.Error) {
	policy := e.a.call.h.policy
	deadline := time.Now().Add(policy.TryDuration)
	for tries := 1; ; tries++ {
		var outcome routing.Outcome
		if resp, begun, outcome, failure = e.next(i); failure == nil || begun || outcome != routing.Retry {
			return resp, begun, failure
		}
		pause, ok := policy.Pause(tries, failure.RetryAfter, deadline)
		if !ok || !routing.Sleep(e.a.call.ctx, pause) {
			return nil, false, failure
		}
	}
}

// next sends the ith request. begun is true if the provider may charge for a failed one.
func (e *translatedEndpoint) next(i int) (resp *http.Response, begun bool, outcome routing.Outcome, failure *plugins.Error) {
	a := e.a
	req, err := e.call.Request(i)
	if err != nil {
		return nil, false, routing.Abort, apierror.Of(err)
	}
	warnings := a.client.warnings
	e.passRequestHeaders(req)
	a.client.warnings = warnings // the first request has the same
	if key := req.Header.Get("Idempotency-Key"); key != "" {
		req.Header.Set("Idempotency-Key", key+"-"+strconv.Itoa(i)) // equal keys would get equal answers
	}
	ctx, cancel := context.WithCancelCause(a.req.Context())
	timer := time.AfterFunc(a.call.h.policy.FirstByte(false, true), func() { cancel(errFirstByte) })
	resp, err = a.x.Bill.Send(req.WithContext(ctx))
	timer.Stop()
	if err != nil {
		failure, outcome = a.unreached(errors.Is(context.Cause(ctx), errFirstByte), err)
		cancel(nil)
		return nil, true, outcome, failure
	}
	resp.Body = cancelingBody{resp.Body, cancel}
	if refuses(resp.StatusCode) {
		timer.Reset(maxErrorTime)
		failure, outcome = a.refusal(resp)
		timer.Stop()
		resp.Body.Close()
		return nil, false, outcome, failure
	}
	return resp, false, routing.Answered, nil
}

// cancelingBody is a body that ends its request when it is closed.
type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (b cancelingBody) Close() error {
	defer b.cancel(nil)
	return b.ReadCloser.Close()
}

// partly ends an attempt that failed after answers to some of its requests, for which the provider
// charges. If the provider may charge for the failed request, too, nobody knows how much.
func (e *translatedEndpoint) partly(observer plugins.Observer, answers []translate.EndpointAnswer, begun bool, failure *plugins.Error) (routing.Outcome, *plugins.Error) {
	a := e.a
	if len(answers) == 0 || a.call.ctx.Err() != nil {
		return a.endBroken(failure)
	}
	if !begun {
		observer.Write(e.call.Read(answers))
		observer.Close()
	}
	return a.failAs(storage.UpstreamAborted, begun, failure, routing.Abort)
}
