package chat

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// failures are what statuses mean where the vendor does not tell, in OpenAI's
// terms.
var failures = map[int]plugins.Error{
	http.StatusUnauthorized:          {Type: "invalid_request_error", Code: "invalid_api_key"},
	http.StatusPaymentRequired:       {Type: "insufficient_quota", Code: "insufficient_quota"},
	http.StatusForbidden:             {Type: "invalid_request_error", Code: "permission_denied"},
	http.StatusNotFound:              {Type: "invalid_request_error", Code: "model_not_found"},
	http.StatusRequestEntityTooLarge: {Type: "invalid_request_error", Code: "request_too_large"},
	http.StatusTooManyRequests:       {Type: "rate_limit_error", Code: "rate_limit_exceeded"},
}

// maxError is how much of an error's body is read.
const maxError = 1 << 20

// Error implements plugins.Provider.
func (p *Provider) Error(resp *http.Response) *plugins.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what is missing is not JSON
	var v gjson.Result
	if gjson.ValidBytes(body) {
		v = gjson.ParseBytes(body)
	}
	e := newError(resp.StatusCode, v)
	e.RetryAfter = retryAfter(resp.Header)
	return e
}

// retryAfter reads the header in seconds, or the finer one that OpenAI and Azure
// have beside it.
func retryAfter(h http.Header) time.Duration {
	value, unit := h.Get("Retry-After-Ms"), time.Millisecond
	if value == "" {
		value, unit = h.Get("Retry-After"), time.Second
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || !(n >= 0 && n < 1e9) {
		return 0
	}
	return time.Duration(n * float64(unit))
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
	if status < 400 || status > 599 {
		status = http.StatusBadGateway
	}
	e := failures[status]
	switch {
	case e.Type != "":
	case status < 500:
		e.Type = "invalid_request_error"
	default:
		e.Type, e.Code = "server_error", "server_error"
	}
	e.Status, e.Param, e.Message = status, v.Get("param").Str, explanation(v, body)
	if s := v.Get("type").Str; s != "" {
		e.Type = s
	}
	if s := code.String(); s != "" {
		e.Code = s
	}
	switch {
	case e.Message == "":
		e.Message = "The provider answered with status " + strconv.Itoa(status) + "."
	case strings.Contains(e.Message, "maximum context length"):
		e.Code = "context_length_exceeded"
	}
	return &e
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
