package llmgateway

import (
	"errors"
	"io"
	"net/http"
	"strings"

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
	if !ok || c.form != nil {
		return nil, errors.ErrUnsupported
	}
	var err error
	if e.call, err = api.TranslateEndpoint(c.ctx, c.dialect, c.object(c.sent), a.translateTarget()); err != nil {
		return nil, err
	}
	if len(e.call.Warnings) > 0 && c.controls.Strict {
		field, _, _ := strings.Cut(e.call.Warnings[0], ":")
		return nil, plugins.Unsupported(field, "Unsupported parameter: '%s' is not supported by the provider.", field)
	}
	a.warnings = append(a.warnings, e.call.Warnings...)
	for _, req := range e.call.Requests {
		e.passRequestHeaders(req)
	}
	return e.call.Requests[0], nil
}

// Answer implements lane. The provider charges for each request that it has answered, so that no
// other target follows once there is an answer.
func (e *translatedEndpoint) Answer(resp *http.Response) (routing.Outcome, *plugins.Error) {
	a := e.a
	observer := observe.New(a.call.dialect, a.x.Record.Provider, nil)
	a.x.Answer = observer
	memory := a.call.answerMemory(resp)
	defer memory.Release()
	from := &struct{ io.Reader }{resp.Body}
	bounded := memory.Reader(from) // counts the bytes of all answers
	var answers []translate.EndpointAnswer
	for i := 0; ; {
		body, err := translate.ReadAll(bounded, resp.ContentLength)
		if refused, ok := errors.AsType[*plugins.Error](err); ok {
			return a.noRoom(refused)
		}
		if err != nil {
			return a.partly(plugins.Upstream("The provider broke off its answer."), i)
		}
		if !plugins.ValidJSON(body) {
			return a.partly(plugins.Upstream("The provider answered with something that is no response."), i)
		}
		answers = append(answers, translate.EndpointAnswer{Header: resp.Header, Body: body})
		if i++; i == len(e.call.Requests) {
			break
		}
		var failure *plugins.Error
		if resp, failure = e.next(i); failure != nil {
			return a.partly(failure, i)
		}
		defer resp.Body.Close()
		from.Reader = resp.Body
	}
	body := e.call.Read(answers)
	if body == nil {
		return a.partly(plugins.Upstream("The provider answered with something that is no response."), len(answers)-1)
	}
	observer.Write(body)
	observer.Close()
	if a.call.dialect == plugins.Embeddings {
		body = packEmbeddings(a.call.body, body)
	}
	a.x.Record.ResponseBytes = int64(len(body))
	a.writeObject(body, jsonType, resp.Header)
	a.finish(true)
	a.x.Answer = nil
	observer.Free()
	return routing.Answered, nil
}

// next sends the ith request.
func (e *translatedEndpoint) next(i int) (*http.Response, *plugins.Error) {
	a := e.a
	resp, err := a.x.Bill.Send(e.call.Requests[i].WithContext(a.req.Context()))
	if err != nil {
		failure, _ := a.unreached(false, err)
		return nil, failure
	}
	if refuses(resp.StatusCode) {
		defer resp.Body.Close()
		failure, _ := a.refusal(resp)
		return nil, failure
	}
	return resp, nil
}

// partly ends an attempt that failed after answers to some of its requests, for which the provider
// charges.
func (a *attempt) partly(failure *plugins.Error, answers int) (routing.Outcome, *plugins.Error) {
	if answers == 0 || a.call.ctx.Err() != nil {
		return a.broken(failure)
	}
	a.x.Stop()
	a.settleAs(storage.UpstreamAborted, true)
	return a.fail(storage.UpstreamAborted, failure, routing.Abort)
}
