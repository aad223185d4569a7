package cohere

import (
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// Error implements translate.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	return translate.ReadError(resp, func(status int, body gjson.Result) *plugins.Error {
		return newError(status, body.Get("message").Str)
	})
}

// newError is the error of a status (https://docs.cohere.com/reference/errors).
func newError(status int, message string) *plugins.Error {
	e := plugins.Refused(status, message)
	if e.Type == "invalid_request_error" && strings.HasPrefix(message, "too many tokens") {
		e.Code = "context_length_exceeded"
	}
	return e
}
