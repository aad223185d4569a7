package cohere

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
func (Provider) Error(resp *http.Response) *plugins.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what is missing is not JSON
	message := ""
	if plugins.ValidJSON(body) {
		message = gjson.GetBytes(body, "message").Str
	}
	e := newError(resp.StatusCode, message)
	e.RetryAfter = plugins.RetryAfter(resp.Header)
	return e
}

// newError is the error of a status (https://docs.cohere.com/reference/errors).
func newError(status int, message string) *plugins.Error {
	e := plugins.Refused(status, message)
	if e.Type == "invalid_request_error" && strings.HasPrefix(message, "too many tokens") {
		e.Code = "context_length_exceeded"
	}
	return e
}
