package openai

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Error implements translate.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	return translate.ReadError(resp, NewError)
}

// NewError returns the error in the body of an answer with a status or, if that is
// 0, in an event, in the format of OpenAI and the vendors that adopted it: in the
// field error, or at the top level. The provider's type, code and message are kept.
func NewError(status int, body gjson.Result) *plugins.Error {
	v := plugins.ErrorObject(body) // body itself with Mistral, vLLM, Cerebras, and in OpenAI's events
	kind, code := plugins.ErrorName(v.Get("type").Str), plugins.ErrorName(v.Get("code").String())
	if n := v.Get("code").Int(); n >= 400 && n < 600 { // OpenRouter's and vLLM's is a status
		status, code = cmp.Or(status, int(n)), ""
	}
	if kind == "error" || kind == "about:blank" || strings.HasPrefix(kind, "response.") { // that of the event, or none (RFC 9457)
		kind = ""
	}
	text := message(v, body)
	e := plugins.Refused(cmp.Or(status, plugins.CodeStatus(code, kind), plugins.BaseStatus(body)), text)
	if kind == "exceed_context_size_error" { // llama.cpp's
		e = plugins.Refused(http.StatusBadRequest, cmp.Or(text, kind)).WithCode(plugins.ContextExceeded)
	}
	switch {
	case e.Code == plugins.ContextExceeded:
	case v.Get("metadata.flagged_input").Exists(): // by OpenRouter's moderation
		e.Code = plugins.ContentRejected
	default:
		e.Code = cmp.Or(code, e.Code)
	}
	e.Reported = plugins.ErrorType(body)
	e.Type, e.Param = cmp.Or(kind, e.Type), plugins.ErrorName(v.Get("param").Str)
	return e
}

// message returns the message of an error, v, in a body. OpenRouter adds what the provider behind
// it has answered.
func message(v, body gjson.Result) string {
	text := plugins.ErrorMessage(body)
	if raw := v.Get("metadata.raw").Str; raw != "" {
		text += ": " + raw
	}
	return text
}
