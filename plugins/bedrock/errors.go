package bedrock

import (
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/plugins"
)

// failures are the types of Bedrock's errors, in lower case and without
// "exception", in OpenAI's terms
// (https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html).
var failures = map[string]plugins.Error{
	"validation":           {Status: http.StatusBadRequest, Type: "invalid_request_error"},
	"unrecognizedclient":   {Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key"},
	"invalidsignature":     {Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key"},
	"expiredtoken":         {Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key"},
	"accessdenied":         {Status: http.StatusForbidden, Type: "invalid_request_error", Code: "permission_denied"},
	"resourcenotfound":     {Status: http.StatusNotFound, Type: "invalid_request_error", Code: "model_not_found"},
	"requesttoolarge":      {Status: http.StatusRequestEntityTooLarge, Type: "invalid_request_error", Code: "request_too_large"},
	"throttling":           {Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "rate_limit_exceeded"},
	"servicequotaexceeded": {Status: http.StatusTooManyRequests, Type: "rate_limit_error", Code: "rate_limit_exceeded"},
	"internalserver":       {Status: http.StatusInternalServerError, Type: "server_error", Code: "server_error"},
	"modelerror":           {Status: http.StatusBadGateway, Type: "server_error", Code: "server_error"},
	"modelstreamerror":     {Status: http.StatusBadGateway, Type: "server_error", Code: "server_error"},
	"modelnotready":        {Status: http.StatusServiceUnavailable, Type: "server_error", Code: "overloaded"},
	"serviceunavailable":   {Status: http.StatusServiceUnavailable, Type: "server_error", Code: "overloaded"},
	"modeltimeout":         {Status: http.StatusGatewayTimeout, Type: "server_error", Code: "server_error"},
}

// statuses are the types of errors that do not tell theirs.
var statuses = map[int]string{
	http.StatusUnauthorized:          "unrecognizedclient",
	http.StatusForbidden:             "accessdenied",
	http.StatusNotFound:              "resourcenotfound",
	http.StatusRequestTimeout:        "modeltimeout",
	http.StatusRequestEntityTooLarge: "requesttoolarge",
	http.StatusFailedDependency:      "modelerror",
	http.StatusTooManyRequests:       "throttling",
	http.StatusBadGateway:            "modelerror",
	http.StatusServiceUnavailable:    "serviceunavailable",
	http.StatusGatewayTimeout:        "modeltimeout",
}

// maxError is how much of an error's body is read.
const maxError = 1 << 20

// Error implements plugins.Provider.
func (*Provider) Error(resp *http.Response) *plugins.Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError)) // what is missing is not JSON
	var v gjson.Result
	if plugins.ValidJSON(body) {
		v = gjson.ParseBytes(body)
	}
	kind := resp.Header.Get("X-Amzn-Errortype")
	if kind == "" {
		kind = v.Get("__type").Str
	}
	message := v.Get("message").Str
	if message == "" {
		message = v.Get("Message").Str
	}
	e := newError(resp.StatusCode, kind, message)
	e.RetryAfter = plugins.RetryAfter(resp.Header)
	return e
}

// newError is the error of an answer with a status or, if that is 0, of a frame.
// Its type may have a namespace before a hash, and an address behind a colon.
func newError(status int, kind, message string) *plugins.Error {
	kind = kind[strings.LastIndexByte(kind, '#')+1:]
	kind, _, _ = strings.Cut(kind, ":")
	e, ok := failures[strings.TrimSuffix(strings.ToLower(kind), "exception")]
	if !ok {
		e, ok = failures[statuses[status]]
	}
	switch {
	case ok:
	case status >= 400 && status < 500:
		e = failures["validation"]
		e.Status = status
	default:
		e = failures["internalserver"]
	}
	e.Message = message
	switch {
	case message == "" && status == 0:
		e.Message = "The provider failed to generate the response."
	case message == "":
		e.Message = "The provider answered with status " + strconv.Itoa(status) + "."
	case strings.Contains(message, "nput is too long"), strings.Contains(message, "prompt is too long"), strings.Contains(message, "exceed context limit"):
		e.Code = "context_length_exceeded"
	case strings.Contains(message, "model identifier is invalid"):
		e.Code = "model_not_found"
	}
	return &e
}
