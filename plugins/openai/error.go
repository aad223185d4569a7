package openai

import (
	"cmp"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Error implements translate.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	return translate.ReadError(resp, NewError)
}

// statuses are the HTTP statuses of the errors within a stream, which have none, by
// their code or else their type.
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

// NewError returns the error in the body of an answer with a status or, if that is
// 0, in an event, in the format of OpenAI and the vendors that adopted it: in the
// field error, or at the top level. The provider's type, code and message are kept.
func NewError(status int, body gjson.Result) *plugins.Error {
	v := body.Get("error")
	if !v.IsObject() {
		v = body // Mistral, vLLM, Cerebras, and OpenAI's events
	}
	kind, code := v.Get("type").Str, v.Get("code").String()
	if n := v.Get("code").Int(); n >= 400 && n < 600 { // OpenRouter's and vLLM's is a status
		status, code = cmp.Or(status, int(n)), ""
	}
	if kind == "error" { // that of the event
		kind = ""
	}
	message := explanation(v, body)
	e := plugins.Refused(cmp.Or(status, statuses[code], statuses[kind]), message)
	if kind == "exceed_context_size_error" { // llama.cpp's
		e = plugins.Refused(http.StatusBadRequest, cmp.Or(message, kind)).WithCode(plugins.ContextExceeded)
	}
	if e.Code != plugins.ContextExceeded {
		e.Code = cmp.Or(code, e.Code)
	}
	e.Type, e.Param = cmp.Or(kind, e.Type), v.Get("param").Str
	return e
}

// explanation returns the message of an error, from any of the fields that vendors
// use.
func explanation(v, body gjson.Result) string {
	text := v.Get("message").String()
	if raw := v.Get("metadata.raw").Str; raw != "" { // of the provider behind OpenRouter
		text += ": " + raw
	}
	if e := body.Get("error"); text == "" && e.Type == gjson.String {
		return e.Str
	}
	return cmp.Or(text, body.Get("detail").String())
}
