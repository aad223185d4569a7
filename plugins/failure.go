package plugins

import (
	"bytes"
	"cmp"
	"html"
	"net/http"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// codeStatuses are the HTTP statuses of errors within a stream, which have none, by their code or
// type: those of OpenAI, Anthropic and Groq.
var codeStatuses = map[string]int{
	"api_error":                     http.StatusInternalServerError,
	"authentication_error":          http.StatusUnauthorized,
	"billing_error":                 http.StatusPaymentRequired,
	"bio_policy":                    http.StatusBadRequest,
	ContextExceeded:                 http.StatusBadRequest,
	QuotaSpent:                      http.StatusTooManyRequests,
	"invalid_api_key":               http.StatusUnauthorized,
	"invalid_prompt":                http.StatusBadRequest,
	"invalid_request_error":         http.StatusBadRequest,
	"json_validate_failed":          http.StatusBadRequest,
	"misalignment_policy_violation": http.StatusBadRequest,
	"model_not_found":               http.StatusNotFound,
	"overloaded_error":              http.StatusServiceUnavailable,
	"rate_limit_error":              http.StatusTooManyRequests,
	"rate_limit_exceeded":           http.StatusTooManyRequests,
	"request_timeout":               http.StatusRequestTimeout,
	"request_too_large":             http.StatusRequestEntityTooLarge,
	"service_unavailable_error":     http.StatusServiceUnavailable,
	"slow_down":                     http.StatusServiceUnavailable,
	"timeout_error":                 http.StatusGatewayTimeout,
	"tool_use_failed":               http.StatusBadRequest,
}

// codeWords tell the status of a code that codeStatuses does not have. The first one counts.
var codeWords = []struct {
	word   string
	status int
}{
	{"timeout", http.StatusRequestTimeout},
	{"timed_out", http.StatusRequestTimeout},
	{"overload", http.StatusServiceUnavailable},
	{"capacity", http.StatusServiceUnavailable},
	{"unavailable", http.StatusServiceUnavailable},
	{"rate_limit", http.StatusTooManyRequests},
	{"too_many_requests", http.StatusTooManyRequests},
	{"throttl", http.StatusTooManyRequests},
	{"quota", http.StatusTooManyRequests},
	{"exhausted", http.StatusTooManyRequests},
	{"internal", http.StatusInternalServerError},
	{"not_found", http.StatusNotFound},
	{"permission", http.StatusForbidden},
	{"unauth", http.StatusUnauthorized},
	{"api_key", http.StatusUnauthorized},
	{"policy", http.StatusBadRequest},
	{"content_filter", http.StatusBadRequest},
	{"invalid_", http.StatusBadRequest},
	{"bad_request", http.StatusBadRequest},
	{"validation", http.StatusBadRequest},
	{"unsupported", http.StatusBadRequest},
	{"context_", http.StatusBadRequest},
}

// CodeStatus returns the HTTP status that the codes and types of an error mean, the most telling
// first, and 0 if they say nothing.
func CodeStatus(codes ...string) int {
	for _, code := range codes {
		code = strings.ToLower(code)
		if status := codeStatuses[code]; status != 0 {
			return status
		}
		for _, w := range codeWords {
			if strings.Contains(code, w.word) {
				return w.status
			}
		}
	}
	return 0
}

// ContentRejected is the code of an error for what the request says.
const ContentRejected = "content_policy_violation"

// CallersFault reports whether a provider that answers with 403 refuses a request for its content, and not
// for its key: OpenRouter refuses what its moderation has flagged
// (https://openrouter.ai/docs/api-reference/errors), xAI what violates its guidelines, and Together
// a prompt that is too long (https://docs.together.ai/docs/error-codes). What may tell of the account is not
// the caller's fault.
func (e *Error) CallersFault() bool {
	if tellsOfAccount.MatchString(strings.Join([]string{e.Code, e.Type, e.Reported, e.Message}, "\n")) {
		return false
	}
	return e.Code == ContextExceeded || e.Code == ContentRejected || tellsOfContent.MatchString(e.Message)
}

// tellsOfAccount finds the codes and words of errors about an account, such as account_deactivated and
// access_terminated (OpenAI), or "This organization has been disabled" (Anthropic). tellsOfContent finds the
// words of errors about what a request says.
var (
	tellsOfAccount = regexp.MustCompile(`(?i)account|organi[sz]ation|workspace|access.terminated|access was terminated|deactivated|suspended`)
	tellsOfContent = regexp.MustCompile(`(?i)flagged|moderation|usage guidelines|content policy`)
)

// errorObjects are the paths of the error in the bodies of vendors, and errorTexts those of the message
// in an error.
var (
	errorObjects = [...]string{"error", "response.error", "choices.0.error", "errors", "base_resp"}
	errorTexts   = [...]string{"message", "Message", "detail", "msg", "error_description", "error_message", "errorMessage", "error_msg", "status_msg", "error", "title"}
)

// ErrorObject returns the object in the body of an answer or of an event that describes its
// error: body itself if there is no other.
func ErrorObject(body gjson.Result) gjson.Result {
	for _, path := range errorObjects[:3] {
		if v := body.Get(path); v.IsObject() {
			return v
		}
	}
	if v := body.Get("errors.0"); v.IsObject() {
		return v
	}
	return body
}

// ErrorWithin returns the error that the body of an answer, or of an event, states in a shape of no
// dialect, though the answer began as a success. It is nil if the body states none.
func ErrorWithin(data []byte) *Error {
	body := ErrorBody(data)
	message := ErrorMessage(body)
	if !body.IsObject() || message == "" {
		return nil
	}
	v := ErrorObject(body)
	code := v.Get("code")
	status := int(code.Int())
	if status < 400 || status > 599 {
		status = cmp.Or(CodeStatus(code.String(), v.Get("type").Str), BaseStatus(body))
	}
	e := Refused(status, message)
	e.Reported = ErrorType(body)
	return e
}

// baseStatuses are the statuses of MiniMax' codes (https://platform.minimax.io/docs/api-reference/errorcode).
var baseStatuses = map[int64]int{
	1001: http.StatusGatewayTimeout, 1002: http.StatusTooManyRequests, 1004: http.StatusUnauthorized, 1008: http.StatusPaymentRequired,
	1026: http.StatusBadRequest, 1027: http.StatusBadRequest, 1039: http.StatusTooManyRequests, 2013: http.StatusBadRequest, 2049: http.StatusUnauthorized,
}

// BaseStatus returns the HTTP status of the error that MiniMax states in its answers, all of which have
// the status 200. It is 0 if body states none, or an unknown one.
func BaseStatus(body gjson.Result) int { return baseStatuses[body.Get("base_resp.status_code").Int()] }

const (
	// maxErrorText is how long the body of an error may be that is text, in bytes.
	maxErrorText = 1 << 10
	// maxErrorPage is how much of a page is read.
	maxErrorPage = 64 << 10
)

// markup finds what a page or XML says of an error.
var markup = regexp.MustCompile(`(?is)<(?:message|title)[^>]*>([^<]+)</`)

// ErrorBody reads the body of an error. It is a string if it is text that is not JSON, or the title of
// a page, and null if it is neither. Of an array, which Google sends for a stream, it is the first
// element, and of events the first one.
func ErrorBody(data []byte) gjson.Result {
	if ValidJSON(data) {
		body := gjson.ParseBytes(data)
		if body.IsArray() {
			body = body.Get("0")
		}
		return body
	}
	text := bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	if len(text) < len(data) && ValidJSON(text) {
		return ErrorBody(text)
	}
	if bytes.HasPrefix(text, []byte("data:")) || bytes.HasPrefix(text, []byte("event:")) { // https://github.com/BerriAI/litellm/issues/17131
		for line := range bytes.Lines(text) {
			if event, ok := bytes.CutPrefix(line, []byte("data:")); ok && ValidJSON(event) {
				return ErrorBody(event)
			}
		}
	}
	if bytes.HasPrefix(text, []byte("<")) { // a page, or XML as of AWS and Azure
		found := markup.FindSubmatch(text[:min(len(text), maxErrorPage)])
		if found == nil {
			return gjson.Result{}
		}
		text = []byte(html.UnescapeString(string(bytes.TrimSpace(found[1]))))
	}
	if len(text) == 0 || len(text) > maxErrorText || !utf8.Valid(text) {
		return gjson.Result{}
	}
	return gjson.Result{Type: gjson.String, Str: string(text)}
}

// ErrorName returns a type, code or parameter of an error, "" for the None that LiteLLM writes in the
// place of null (https://github.com/BerriAI/litellm/pull/39521).
func ErrorName(name string) string {
	if name == "None" {
		return ""
	}
	return name
}

// ErrorType returns the type or code by which the body of an answer or of an event names its error,
// "" if it names none.
func ErrorType(body gjson.Result) string {
	v := body
	for _, path := range errorObjects[:3] {
		if inner := body.Get(path); inner.IsObject() {
			v = inner
			break
		}
	}
	kind := ErrorName(v.Get("type").Str)
	switch {
	case kind == "error": // in an event of OpenAI's
		kind = ""
	case v.Raw == body.Raw && body.Get("object").Str != "error": // which Mistral and vLLM have
		return ""
	}
	return cmp.Or(kind, v.Get("status").Str, ErrorName(v.Get("code").String())) // Google's code is a number
}

// ErrorMessage returns the message of an error in any of the shapes that vendors give it, also
// text and JSON within a string, "" if there is none.
func ErrorMessage(body gjson.Result) string {
	switch {
	case body.Type == gjson.String:
		if s := strings.TrimSpace(body.Str); strings.HasPrefix(s, "{") && ValidJSON([]byte(s)) {
			if message := ErrorMessage(gjson.Parse(s)); message != "" {
				return message
			}
		}
		return body.Str
	case body.IsArray():
		return ErrorMessage(body.Get("0"))
	case !body.IsObject():
		return ""
	}
	for _, path := range errorObjects {
		v := body.Get(path)
		if path == "base_resp" && v.Get("status_code").Int() == 0 { // MiniMax says so of each success
			continue
		}
		if v.Type == gjson.JSON {
			if message := ErrorMessage(v); message != "" {
				return message
			}
		}
	}
	for _, path := range errorTexts {
		switch v := body.Get(path); {
		case v.Type == gjson.String && v.Str != "", v.IsObject():
			return ErrorMessage(v)
		case v.IsArray(): // of FastAPI: each element names a field
			return v.Raw
		}
	}
	return ""
}

// waits finds how long the message of an error asks to wait, as in "try again in 1m2.5s" or
// "retry after 20 seconds".
var waits = regexp.MustCompile(`(?i)\b(?:try again|retry)(?: your request)?(?: in| after)? ((?:\d+(?:\.\d+)?(?:ms|h|m|s))+|\d+(?:\.\d+)? ?(?:seconds?|minutes?|milliseconds?))\b`)

// waitIn returns how long a message asks to wait, 0 if it does not say.
func waitIn(message string) time.Duration {
	found := waits.FindStringSubmatch(message)
	if found == nil {
		return 0
	}
	short := strings.ReplaceAll(strings.TrimSuffix(strings.ToLower(found[1]), "s"), " ", "")
	for _, unit := range [...][2]string{{"millisecond", "ms"}, {"second", "s"}, {"minute", "m"}} {
		if n, ok := strings.CutSuffix(short, unit[0]); ok {
			d, _ := time.ParseDuration(n + unit[1])
			return d
		}
	}
	d, _ := time.ParseDuration(strings.ToLower(found[1])) // 0 if it is too long
	return d
}
