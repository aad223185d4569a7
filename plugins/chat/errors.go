package chat

import (
	"io"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// maxError is how much of an error's body is read.
const maxError = 1 << 20

// Error implements plugins.Provider.
func (p *Provider) Error(resp *http.Response) *plugins.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what is missing is not JSON
	var v gjson.Result
	if plugins.ValidJSON(body) {
		v = gjson.ParseBytes(body)
	}
	e := newError(resp.StatusCode, v)
	e.RetryAfter = plugins.RetryAfter(resp.Header)
	return e
}

// newError is the error in the body of an answer with a status or, if that is 0,
// in an event.
func newError(status int, body gjson.Result) *plugins.Error {
	if body.IsArray() {
		body = body.Get("0")
	}
	v := body.Get("error")
	if !v.IsObject() {
		v = body // Mistral, vLLM, Cerebras
	}
	code := v.Get("code")
	if n := code.Int(); n >= 400 && n < 600 {
		if code = (gjson.Result{}); status < 400 {
			status = int(n) // OpenRouter
		}
	}
	e := plugins.Refused(status, explanation(v, body))
	e.Param = v.Get("param").Str
	if s := v.Get("type").Str; s != "" {
		e.Type = s
	}
	if s := code.String(); s != "" {
		e.Code = s
	}
	if strings.Contains(e.Message, "maximum context length") {
		e.Code = "context_length_exceeded"
	}
	return e
}

// explanation is what an error says, wherever the vendor says it.
func explanation(v, body gjson.Result) string {
	text := v.Get("message").String()
	if raw := v.Get("metadata.raw").Str; raw != "" { // of the provider behind OpenRouter
		text += ": " + raw
	}
	switch {
	case text != "":
		return text
	case body.Get("error").Type == gjson.String:
		return body.Get("error").Str
	}
	return body.Get("detail").String()
}
