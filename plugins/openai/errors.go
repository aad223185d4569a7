package openai

import (
	"cmp"
	"io"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// maxError is how much of an error's body is read.
const maxError = 1 << 20

// Error implements plugins.Provider. What the provider says is kept.
func (Provider) Error(resp *http.Response) *plugins.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what is missing is not JSON
	var v gjson.Result
	if plugins.ValidJSON(body) {
		v = gjson.ParseBytes(body)
	}
	e := newError(resp.StatusCode, v)
	e.RetryAfter = plugins.RetryAfter(resp.Header)
	return e
}

// statuses are those of the errors within a stream, which tell none, by their
// code or else their type.
var statuses = map[string]int{
	"context_length_exceeded":       http.StatusBadRequest,
	"insufficient_quota":            http.StatusTooManyRequests,
	"invalid_prompt":                http.StatusBadRequest,
	"invalid_request_error":         http.StatusBadRequest,
	"model_not_found":               http.StatusNotFound,
	"rate_limit_error":              http.StatusTooManyRequests,
	"rate_limit_exceeded":           http.StatusTooManyRequests,
	"service_unavailable_error":     http.StatusServiceUnavailable,
	"bio_policy":                    http.StatusBadRequest,
	"misalignment_policy_violation": http.StatusBadRequest,
}

// newError is the error that v describes in its field error or by itself, of an
// answer with a status or, if that is 0, of an event.
func newError(status int, v gjson.Result) *plugins.Error {
	if nested := v.Get("error"); nested.IsObject() {
		v = nested
	}
	message := v.Get("message").Str
	if message == "" {
		message = v.Get("error").Str // xAI's
	}
	e := &plugins.Error{
		Status:  status,
		Type:    v.Get("type").Str,
		Code:    v.Get("code").Str,
		Param:   v.Get("param").Str,
		Message: message,
	}
	if e.Type == "error" { // that of the event
		e.Type = ""
	}
	if code := v.Get("code"); code.Type == gjson.Number && status == 0 { // OpenRouter's is a status
		e.Status = int(code.Int())
	}
	if cause := v.Get("metadata.raw").Str; cause != "" { // of OpenRouter's provider
		e.Message += ": " + cause
	}
	if e.Status < 400 || e.Status > 599 {
		e.Status = cmp.Or(statuses[e.Code], statuses[e.Type], http.StatusInternalServerError)
	}
	e.Type = cmp.Or(e.Type, typeOf(e.Status))
	switch {
	case e.Message != "":
	case status == 0:
		e.Message = "The provider failed to generate the response."
	default:
		e.Message = "The provider answered with status " + strconv.Itoa(status) + "."
	}
	return e
}

// typeOf is the type of an error that tells none.
func typeOf(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}
