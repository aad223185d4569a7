package plugins

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Error is a failure as the client sees it, with OpenAI's types and codes.
type Error struct {
	// Status is the HTTP status, also of an error inside a stream.
	Status int
	// Type is OpenAI's, such as "invalid_request_error" or "server_error".
	Type string
	// Code is OpenAI's, such as "model_not_found", "" if there is none.
	Code string
	// Param is the JSON path of the field at fault, such as
	// "input[3].call_id", "" if no field is at fault.
	Param string
	// Message is a sentence for people.
	Message string
	// RetryAfter is how long the provider asks to wait, 0 if it does not say.
	RetryAfter time.Duration
	// Reported is the provider's own type or code of the error, which records have. "" if the provider
	// has stated none.
	Reported string
	// Final says that the same request would be refused again for longer than clients
	// wait.
	Final bool
}

func (e *Error) Error() string { return e.Message }

// ReportedType returns the type that records have: the provider's own, or else that of the client.
func (e *Error) ReportedType() string { return cmp.Or(e.Reported, e.Type) }

// WithCode sets the code of the error, and returns it.
func (e *Error) WithCode(code string) *Error {
	e.Code = code
	return e
}

// Rejected is the error for a request that is refused as a whole, as for its key or its size.
func Rejected(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Type: "invalid_request_error", Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid is the 400 for a request whose field param is at fault.
func Invalid(param, format string, args ...any) *Error {
	e := Rejected(http.StatusBadRequest, "", format, args...)
	e.Param = param
	return e
}

// Unsupported is the 400 for a field that the target cannot honour. The message
// says why.
func Unsupported(param, format string, args ...any) *Error {
	return Invalid(param, format, args...).WithCode("unsupported_parameter")
}

// Unavailable is the 503 for a request that the gateway cannot serve now, and the time after which
// to try again, 0 if that is not known.
func Unavailable(code string, retryAfter time.Duration, message string) *Error {
	return &Error{Status: http.StatusServiceUnavailable, Type: "server_error", Code: code, RetryAfter: retryAfter, Message: message}
}

// Upstream is the 502 for a provider whose answer breaks off or cannot be read.
func Upstream(format string, args ...any) *Error {
	return &Error{
		Status:  http.StatusBadGateway,
		Type:    "server_error",
		Code:    "server_error",
		Message: fmt.Sprintf(format, args...),
	}
}

// refusals are OpenAI's types and codes by status.
var refusals = map[int]Error{
	http.StatusUnauthorized:          {Type: "invalid_request_error", Code: "invalid_api_key"},
	http.StatusPaymentRequired:       {Type: QuotaSpent, Code: QuotaSpent},
	http.StatusForbidden:             {Type: "invalid_request_error", Code: "permission_denied"},
	http.StatusNotFound:              {Type: "invalid_request_error", Code: "model_not_found"},
	http.StatusRequestEntityTooLarge: {Type: "invalid_request_error", Code: "request_too_large"},
	http.StatusTooManyRequests:       {Type: "rate_limit_error", Code: "rate_limit_exceeded"},
	http.StatusServiceUnavailable:    {Type: "server_error", Code: Overloaded},
}

// Overloaded is the code of an error for a provider, or for Weir, that has too much to do. Clients of
// Messages know it as an overloaded_error.
const Overloaded = "overloaded"

// StatusOverloaded is the status of Anthropic's overloaded_error, which clients of
// other APIs do not know.
const StatusOverloaded = 529

// Refused is the failure of a provider that answered with status, or that reported
// an error in the middle of its answer if status is 0. The error has the same
// status, except 503 for StatusOverloaded, 400 for a context that is exceeded, and 502 for a status
// that is no error. If
// message is "", the error names the status.
func Refused(status int, message string) *Error {
	switch {
	case message != "":
	case status == 0:
		message = "The provider failed to generate the response."
	default:
		message = fmt.Sprintf("The provider answered with status %d.", status)
	}
	tooLong := saysContextExceeded(status, message)
	switch {
	case tooLong:
		status = http.StatusBadRequest
	case status == StatusOverloaded:
		status = http.StatusServiceUnavailable
	case status < 400 || status > 599:
		status = http.StatusBadGateway
	}
	e, ok := refusals[status]
	switch {
	case ok:
	case status < 500:
		e.Type = "invalid_request_error"
	default:
		e.Type, e.Code = "server_error", "server_error"
	}
	if tooLong {
		e.Code = ContextExceeded
	}
	e.Status, e.Message = status, message
	if status == http.StatusTooManyRequests || status >= http.StatusInternalServerError {
		e.RetryAfter = waitIn(message)
	}
	return &e
}

// RetryAfter is how long the header of an answer asks to wait, 0 if it does not say: Retry-After
// in seconds or as a date (RFC 9110, section 10.2.3), or as some providers write it (`1m30s`), or
// the finer Retry-After-Ms that OpenAI and Azure have beside it.
func RetryAfter(h http.Header) time.Duration {
	for _, field := range []struct {
		header string
		unit   time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		value := h.Get(field.header)
		if n, err := strconv.ParseFloat(value, 64); err == nil && n >= 0 && n < 1e9 {
			return time.Duration(n * float64(field.unit))
		}
		if d, err := time.ParseDuration(value); err == nil {
			return max(d, 0)
		}
		if at, err := http.ParseTime(value); err == nil {
			now, err := http.ParseTime(h.Get("Date")) // by the provider's own clock
			if err != nil {
				now = time.Now()
			}
			return max(at.Sub(now), 0)
		}
	}
	return 0
}

// UntilReset returns the time until all exhausted rate limits are reset, by the provider's own clock, or 0
// if the header of the answer does not say. It reads OpenAI's and
// Groq's durations (https://platform.openai.com/docs/guides/rate-limits), Anthropic's dates
// (https://platform.claude.com/docs/en/api/rate-limits), and OpenRouter's milliseconds since 1970
// (https://openrouter.ai/docs/api-reference/limits).
func UntilReset(h http.Header) time.Duration {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	var wait time.Duration
	for _, limit := range [...]string{"", "-Requests", "-Tokens", "-Input-Tokens", "-Output-Tokens"} {
		for remaining, reset := range map[string]string{
			"Anthropic-Ratelimit" + limit + "-Remaining": "Anthropic-Ratelimit" + limit + "-Reset",
			"X-Ratelimit-Remaining" + limit:              "X-Ratelimit-Reset" + limit,
		} {
			if h.Get(remaining) == "0" {
				wait = max(wait, until(h.Get(reset), now))
			}
		}
	}
	return wait
}

// until returns how long it is until a time that is a duration, a date, or milliseconds or seconds
// since 1970 or from now; 0 if it is none.
func until(s string, now time.Time) time.Duration {
	const month = 31 * 24 * 60 * 60 // in seconds: what is longer is since 1970
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		switch {
		case n >= 1e11:
			return time.UnixMilli(int64(n)).Sub(now)
		case n >= month:
			return time.Unix(int64(n), 0).Sub(now)
		}
		return time.Duration(n * float64(time.Second))
	}
	if at, err := time.Parse(time.RFC3339, s); err == nil {
		return at.Sub(now)
	}
	d, _ := time.ParseDuration(s) // 0 if it is none
	return d
}

// anthropicTypes are the types of Anthropic's errors by their statuses
// (https://platform.claude.com/docs/en/api/errors).
var anthropicTypes = map[int]string{
	http.StatusBadRequest:            "invalid_request_error",
	http.StatusUnauthorized:          "authentication_error",
	http.StatusPaymentRequired:       "billing_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusInternalServerError:   "api_error",
	http.StatusGatewayTimeout:        "timeout_error",
	StatusOverloaded:                 "overloaded_error",
}

// AnthropicErrorType returns the type that Anthropic gives errors of a status.
func AnthropicErrorType(status int) string {
	general := http.StatusInternalServerError
	if status < general {
		general = http.StatusBadRequest
	}
	return cmp.Or(anthropicTypes[status], anthropicTypes[general])
}

// AnthropicType returns the type that Anthropic gives the error.
func (e *Error) AnthropicType() string {
	if e.Code == Overloaded {
		return anthropicTypes[StatusOverloaded]
	}
	return AnthropicErrorType(e.Status)
}

// AnthropicStatus returns the status of Anthropic's errors of a type, 0 for an unknown type.
func AnthropicStatus(errorType string) int {
	for status, of := range anthropicTypes {
		if of == errorType {
			return status
		}
	}
	return 0
}

// AppendObject appends the error as a JSON object, which bodies and events have in
// the member "error".
func (e *Error) AppendObject(b []byte) []byte {
	b = append(b, `{"message":`...)
	b = AppendString(b, e.Message)
	b = AppendString(AppendKey(b, "type"), e.Type)
	b = AppendStringOrNull(AppendKey(b, "param"), e.Param)
	b = AppendStringOrNull(AppendKey(b, "code"), e.Code)
	return append(b, '}')
}

var _ error = (*Error)(nil)
