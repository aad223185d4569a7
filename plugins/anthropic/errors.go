package anthropic

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// failures are the types of Anthropic's errors in OpenAI's terms
// (https://platform.claude.com/docs/en/api/errors).
var failures = map[string]plugins.Error{
	"invalid_request_error": {Status: http.StatusBadRequest, Type: "invalid_request_error"},
	"authentication_error":  {Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key"},
	"billing_error":         {Status: http.StatusPaymentRequired, Type: "insufficient_quota", Code: "insufficient_quota"},
	"permission_error":      {Status: http.StatusForbidden, Type: "invalid_request_error", Code: "permission_denied"},
	"not_found_error":       {Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found"},
	"request_too_large":     {Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "request_too_large"},
	"rate_limit_error":      {Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "rate_limit_exceeded"},
	"api_error":             {Status: http.StatusInternalServerError, Type: "server_error", Code: "server_error"},
	"timeout_error":         {Status: http.StatusGatewayTimeout, Type: "server_error", Code: "server_error"},
	"overloaded_error":      {Status: http.StatusServiceUnavailable, Type: "server_error", Code: "overloaded"},
}

// statuses are the types of errors that do not tell theirs.
var statuses = map[int]string{
	http.StatusUnauthorized:          "authentication_error",
	http.StatusPaymentRequired:       "billing_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusGatewayTimeout:        "timeout_error",
	statusOverloaded:                 "overloaded_error",
}

// statusOverloaded is Anthropic's own.
const statusOverloaded = 529

// maxError is how much of an error's body is read.
const maxError = 1 << 20

// Error implements plugins.Provider.
func (Provider) Error(resp *http.Response) *plugins.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what is missing is not JSON
	var v gjson.Result
	if plugins.ValidJSON(body) {
		v = gjson.GetBytes(body, "error")
	}
	e := newError(resp.StatusCode, v)
	e.RetryAfter = plugins.RetryAfter(resp.Header)
	if e.RetryAfter == 0 && e.Status == http.StatusTooManyRequests {
		e.RetryAfter = untilReset(resp.Header)
	}
	return e
}

// limits are what Anthropic limits the rate of, as its headers name it.
var limits = [...]string{"Requests", "Tokens", "Input-Tokens", "Output-Tokens"}

// untilReset is how long it takes until every limit that is used up is full
// again, by the provider's own clock; 0 if the header does not say.
func untilReset(h http.Header) time.Duration {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	var wait time.Duration
	for _, limit := range limits {
		limit = "Anthropic-Ratelimit-" + limit
		if reset, err := time.Parse(time.RFC3339, h.Get(limit+"-Reset")); err == nil && h.Get(limit+"-Remaining") == "0" {
			wait = max(wait, reset.Sub(now))
		}
	}
	return wait
}

// newError is the error that v describes, of an answer with a status or, if that
// is 0, of an event.
func newError(status int, v gjson.Result) *plugins.Error {
	e, ok := failures[v.Get("type").Str]
	if !ok {
		e, ok = failures[statuses[status]]
	}
	switch {
	case ok:
	case status >= 400 && status < 500:
		e = failures["invalid_request_error"]
	default:
		e = failures["api_error"]
	}
	if status >= 400 && status < 600 && status != statusOverloaded {
		e.Status = status
	}
	e.Message = v.Get("message").Str
	switch {
	case e.Message == "" && status == 0:
		e.Message = "The provider failed to generate the response."
	case e.Message == "":
		e.Message = "The provider answered with status " + strconv.Itoa(status) + "."
	case strings.HasPrefix(e.Message, "prompt is too long"), strings.Contains(e.Message, "exceed context limit"):
		e.Code = "context_length_exceeded"
	}
	return &e
}
