package gemini

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// failures are Google's codes in OpenAI's terms
// (https://cloud.google.com/apis/design/errors).
var failures = map[string]plugins.Error{
	"INVALID_ARGUMENT":    {Status: http.StatusBadRequest, Type: "invalid_request_error"},
	"FAILED_PRECONDITION": {Status: http.StatusBadRequest, Type: "invalid_request_error"},
	"OUT_OF_RANGE":        {Status: http.StatusBadRequest, Type: "invalid_request_error"},
	"UNAUTHENTICATED":     {Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key"},
	"PERMISSION_DENIED":   {Status: http.StatusForbidden, Type: "invalid_request_error", Code: "permission_denied"},
	"NOT_FOUND":           {Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found"},
	"RESOURCE_EXHAUSTED":  {Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "rate_limit_exceeded"},
	"INTERNAL":            {Status: http.StatusInternalServerError, Type: "server_error", Code: "server_error"},
	"UNAVAILABLE":         {Status: http.StatusServiceUnavailable, Type: "server_error", Code: "overloaded"},
	"DEADLINE_EXCEEDED":   {Status: http.StatusGatewayTimeout, Type: "server_error", Code: "server_error"},
}

// statuses are the codes of errors that do not tell theirs.
var statuses = map[int]string{
	http.StatusUnauthorized:       "UNAUTHENTICATED",
	http.StatusForbidden:          "PERMISSION_DENIED",
	http.StatusNotFound:           "NOT_FOUND",
	http.StatusTooManyRequests:    "RESOURCE_EXHAUSTED",
	http.StatusServiceUnavailable: "UNAVAILABLE",
	http.StatusGatewayTimeout:     "DEADLINE_EXCEEDED",
}

// maxError is how much of an error's body is read.
const maxError = 1 << 20

// Error implements plugins.Provider.
func (generateContent) Error(resp *http.Response) *plugins.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what is missing is not JSON
	var v gjson.Result
	if plugins.ValidJSON(body) {
		v = gjson.ParseBytes(body)
	}
	if v.IsArray() { // of a stream
		v = v.Get("0")
	}
	e := newError(resp.StatusCode, v.Get("error"))
	if wait := plugins.RetryAfter(resp.Header); wait > 0 {
		e.RetryAfter = wait
	}
	return e
}

// newError is the error that v describes, of an answer with a status or, if that
// is 0, of a piece of a stream.
func newError(status int, v gjson.Result) *plugins.Error {
	if code := v.Get("code").Int(); status == 0 && code >= 400 && code < 600 {
		status = int(code)
	}
	e, ok := failures[v.Get("status").Str]
	if !ok {
		e, ok = failures[statuses[status]]
	}
	switch {
	case ok:
	case status >= 400 && status < 500:
		e = failures["INVALID_ARGUMENT"]
	default:
		e = failures["INTERNAL"]
	}
	if status >= 400 && status < 600 {
		e.Status = status
	}
	e.Message = v.Get("message").Str
	switch {
	case e.Message == "" && status == 0:
		e.Message = "The provider failed to generate the response."
	case e.Message == "":
		e.Message = "The provider answered with status " + strconv.Itoa(status) + "."
	case strings.Contains(e.Message, "input token count") && strings.Contains(e.Message, "exceeds the maximum"):
		e.Code = "context_length_exceeded"
	}
	for _, detail := range v.Get("details").Array() {
		switch detail.Get("@type").Str {
		case "type.googleapis.com/google.rpc.RetryInfo":
			if delay, err := time.ParseDuration(detail.Get("retryDelay").Str); err == nil && delay > 0 {
				e.RetryAfter = delay
			}
		case "type.googleapis.com/google.rpc.ErrorInfo":
			if detail.Get("reason").Str == "API_KEY_INVALID" { // with status 400
				message := e.Message
				e = failures["UNAUTHENTICATED"]
				e.Message = message
			}
		}
	}
	return &e
}
