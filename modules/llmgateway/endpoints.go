package llmgateway

import (
	"net/http"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// defaultModeration is the model of a request for moderation that names none, as at OpenAI
// (https://platform.openai.com/docs/api-reference/moderations/create).
const defaultModeration = "omni-moderation-latest"

// endpoint is the lane of endpoints that are not translated: both sides' bytes pass, but for the
// name of the model, and an encoding_format of null: LiteLLM sends it, and vLLM, DeepInfra and others
// refuse it (https://github.com/agent0ai/agent-zero/issues/1429).
type endpoint struct{ native }

// Request implements lane.
func (e *endpoint) Request() (*http.Request, error) {
	a, c := e.a, e.a.call
	req, err := a.endpoint(c.route.path)
	if err != nil {
		return nil, err
	}
	e.passRequestHeaders(req)
	if c.input.form != nil {
		req.Header.Set("Content-Type", c.r.Header.Get("Content-Type"))
		translate.SetBody(req, c.input.form.withModel(a.target.Model)...)
		return req, nil
	}
	req.Header.Set("Content-Type", jsonType)
	body := e.askForUsage(c.input.sent)
	if c.dialect == plugins.Embeddings && c.input.field("encoding_format").Raw == "null" {
		body = plugins.DeleteField(body, "encoding_format")
	}
	translate.SetBody(req, plugins.WithModel(c.input.object(body), a.target.Model)...)
	return req, nil
}

// Bound implements bounder, if requests have no limit of output.
func (e *endpoint) Bound(of *bound.Call) {
	c := e.a.call
	if c.route.usage == nil {
		return
	}
	of.Fixed = func() plugins.Usage {
		usage := c.route.usage(&c.input, bound.UpperBound)
		if c.dialect == plugins.Transcription {
			usage.Input.N = min(usage.Input.N, of.Model.InputLimit())
			usage.InputAudio, usage.Output = usage.Input, usage.Input
		}
		return usage
	}
	of.Estimated = func() plugins.Usage { return c.route.usage(&c.input, bound.Likely) }
}

// unsupportedEndpoint is the code of an error for an endpoint that the provider does not
// have, and to which the gateway does not translate.
const unsupportedEndpoint = "unsupported_endpoint"

func noEndpoint(t routing.Target) *plugins.Error {
	return plugins.Invalid("model", "%s does not speak the format of this endpoint.", t.Account.Label).WithCode(unsupportedEndpoint)
}

// passBytes passes an answer in pieces. take gets each piece, and ended learns whether the
// answer was whole. The last piece waits for the record.
func (a *attempt) passBytes(resp *http.Response, take func(p []byte), ended func(complete bool)) (routing.Outcome, *plugins.Error) {
	last, complete := a.client.passMost(resp.Body, func(p []byte) {
		take(p)
		a.x.Record.ResponseBytes += int64(len(p))
	}, func(p []byte) { a.client.writeMedia(p, resp) })
	if !a.client.begun && (!complete || len(last) == 0 && a.call.dialect == plugins.Speech) {
		return a.endBroken(plugins.Upstream("The provider broke off its answer."))
	}
	ended(complete)
	if complete {
		a.x.Commit(endStates[plugins.Ended])
		a.client.writeMedia(last, resp)
	}
	a.finish(complete)
	if !complete && a.client.err == nil {
		panic(http.ErrAbortHandler) // a client must not take what it has for all
	}
	return routing.Answered, nil
}
