package cohere

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// failures are Cohere's statuses in OpenAI's terms
// (https://docs.cohere.com/reference/errors).
var failures = map[int]plugins.Error{
	http.StatusUnauthorized:    {Type: "invalid_request_error", Code: "invalid_api_key"},
	http.StatusPaymentRequired: {Type: "insufficient_quota", Code: "insufficient_quota"},
	http.StatusForbidden:       {Type: "invalid_request_error", Code: "permission_denied"},
	http.StatusNotFound:        {Type: "invalid_request_error", Code: "model_not_found"},
	http.StatusTooManyRequests: {Type: "rate_limit_error", Code: "rate_limit_exceeded"},
}

// maxError is how much of an error's body is read.
const maxError = 1 << 20

// Error implements plugins.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what is missing is not JSON
	message := ""
	if gjson.ValidBytes(body) {
		message = gjson.GetBytes(body, "message").Str
	}
	if message == "" {
		message = "The provider answered with status " + strconv.Itoa(resp.StatusCode) + "."
	}
	e := newError(resp.StatusCode, message)
	if seconds, err := strconv.ParseUint(resp.Header.Get("Retry-After"), 10, 31); err == nil {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// newError is the error of a status.
func newError(status int, message string) *plugins.Error {
	e, ok := failures[status]
	switch {
	case ok:
	case status >= 400 && status < 500:
		e.Type = "invalid_request_error"
		if strings.HasPrefix(message, "too many tokens") {
			e.Code = "context_length_exceeded"
		}
	default:
		e.Type, e.Code = "server_error", "server_error"
	}
	e.Status, e.Message = status, message
	return &e
}
