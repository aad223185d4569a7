package plugins

import (
	"fmt"
	"net/http"
	"time"
)

// Error is a failure as the client is told it, in OpenAI's terms.
type Error struct {
	// Status is the HTTP status, also of an error inside a stream.
	Status int
	// Type is OpenAI's, such as "invalid_request_error" or "server_error".
	Type string
	// Code is OpenAI's, such as "model_not_found", "" if there is none.
	Code string
	// Param is the JSON path of the field at fault, such as
	// "input[3].call_id", "" if it is none.
	Param string
	// Message is a sentence for people.
	Message string
	// RetryAfter is how long the provider asks to wait, 0 if it does not say.
	RetryAfter time.Duration
}

func (e *Error) Error() string { return e.Message }

// Invalid is the 400 for a request whose field param is at fault.
func Invalid(param, format string, args ...any) *Error {
	return &Error{
		Status:  http.StatusBadRequest,
		Type:    "invalid_request_error",
		Param:   param,
		Message: fmt.Sprintf(format, args...),
	}
}

// Unsupported is the 400 for a field that the target cannot honour. The message
// says why.
func Unsupported(param, format string, args ...any) *Error {
	e := Invalid(param, format, args...)
	e.Code = "unsupported_parameter"
	return e
}

// Upstream is the failure of a provider that broke off or sent what cannot be
// read: a 502.
func Upstream(format string, args ...any) *Error {
	return &Error{
		Status:  http.StatusBadGateway,
		Type:    "server_error",
		Code:    "server_error",
		Message: fmt.Sprintf(format, args...),
	}
}

// AppendJSON appends the error as the body of an HTTP answer.
func (e *Error) AppendJSON(b []byte) []byte {
	b = append(b, `{"error":`...)
	b = e.appendObject(b)
	return append(b, '}')
}

func (e *Error) appendObject(b []byte) []byte {
	b = append(b, `{"message":`...)
	b = appendString(b, e.Message)
	b = append(b, `,"type":`...)
	b = appendString(b, e.Type)
	b = append(b, `,"param":`...)
	b = appendStringOrNull(b, e.Param)
	b = append(b, `,"code":`...)
	b = appendStringOrNull(b, e.Code)
	return append(b, '}')
}

var _ error = (*Error)(nil)
