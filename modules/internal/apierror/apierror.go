// Package apierror writes errors in the format of the client's dialect, so that the
// client's library understands them.
package apierror

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/code"

	"github.com/weirhq/weir/plugins"
)

// Attempt is one failed attempt at a call.
type Attempt struct {
	Target  string `json:"target"`
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// Of returns err as the client gets it: what only the gateway may know is an internal error.
func Of(err error) *plugins.Error {
	if e, ok := errors.AsType[*plugins.Error](err); ok {
		return e
	}
	return &plugins.Error{
		Status: http.StatusInternalServerError, Type: "server_error", Code: "server_error",
		Message: "The gateway failed to process the request.",
	}
}

// To returns e as the client that made a request of dialect d obeys it. Codex calls again after a 402,
// whatever the header says, and tells people of a usage limit after this 429
// (https://github.com/openai/codex/blob/main/codex-rs/codex-api/src/api_bridge.rs). Clients of Messages
// know an overload by a status that others do not have (https://platform.claude.com/docs/en/api/errors).
func To(r *http.Request, d plugins.Dialect, e *plugins.Error) *plugins.Error {
	to := *e
	switch {
	case e.Status == http.StatusPaymentRequired && strings.HasPrefix(r.Header.Get("Originator"), "codex"):
		to.Status, to.Type, to.Final = http.StatusTooManyRequests, "usage_limit_reached", true
	case e.Code == plugins.Overloaded && (d == plugins.Messages || d == plugins.CountTokens):
		to.Status = plugins.StatusOverloaded
	default:
		return e
	}
	return &to
}

// UpstreamAuth is the code of an error that is not the caller's fault: a provider refuses the
// gateway's key.
const UpstreamAuth = "upstream_auth"

// Write answers e, with the attempts that led to it.
func Write(w http.ResponseWriter, d plugins.Dialect, e *plugins.Error, attempts ...Attempt) error {
	SetHeader(w.Header(), e)
	return writeText(w, e.Status, Body(d, e, attempts...))
}

// SetHeader sets the header fields of an error, whatever its body is.
func SetHeader(header http.Header, e *plugins.Error) {
	if e.Status == http.StatusUnauthorized { // https://www.rfc-editor.org/rfc/rfc9110#section-15.5.2
		header.Set("Www-Authenticate", `Bearer realm="weir"`)
	}
	if e.Status == http.StatusPaymentRequired || e.Final { // the SDKs of OpenAI and Anthropic obey it
		header.Set("X-Should-Retry", "false")
	}
	if e.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(float64(e.RetryAfter)/float64(time.Second)))))
	}
}

// Body is the body of e, in JSON.
func Body(d plugins.Dialect, e *plugins.Error, attempts ...Attempt) []byte {
	text, _ := json.Marshal(body(d, e, attempts)) // strings and numbers
	return text
}

func body(d plugins.Dialect, e *plugins.Error, attempts []Attempt) any {
	switch d {
	case plugins.Messages, plugins.CountTokens:
		body := anthropicBody{"error", anthropicError{Type: e.AnthropicType(), Message: e.AnthropicMessage(), Attempts: attempts}}
		if e.Code != "" && e.Code != e.Type { // or else it says no more
			body.Error.Details = &anthropicDetails{e.Code}
		}
		return body
	case plugins.GenerateContent, plugins.EmbedContent, plugins.Predict, plugins.Interactions:
		return googleBody{googleError{e.Status, e.Message, GoogleCode(e.Status).String(), attempts}}
	default:
		return openAIBody(e, attempts)
	}
}

// openAIBody is the body of e as OpenAI has it, and all who follow OpenAI.
func openAIBody(e *plugins.Error, attempts []Attempt) json.RawMessage {
	b := e.AppendObject([]byte(`{"error":`))
	if len(attempts) > 0 {
		list, _ := json.Marshal(attempts) // strings and numbers
		b = append(plugins.AppendKey(b[:len(b)-1], "attempts"), list...)
		b = append(b, '}')
	}
	return append(b, '}')
}

type anthropicBody struct {
	Type  string         `json:"type"`
	Error anthropicError `json:"error"`
}

type anthropicError struct {
	Type     string            `json:"type"`
	Message  string            `json:"message"`
	Details  *anthropicDetails `json:"details,omitempty"`
	Attempts []Attempt         `json:"attempts,omitempty"`
}

// anthropicDetails name the cause of an error. Libraries treat a code that they do not know
// as the error's type alone (https://platform.claude.com/docs/en/api/errors).
type anthropicDetails struct {
	ErrorCode string `json:"error_code"`
}

type googleBody struct {
	Error googleError `json:"error"`
}

type googleError struct {
	Code     int       `json:"code"`
	Message  string    `json:"message"`
	Status   string    `json:"status"`
	Attempts []Attempt `json:"attempts,omitempty"`
}

// GoogleCode is the google.rpc.Code of errors of a status, which Gemini, Vertex
// and OTLP answer.
func GoogleCode(status int) code.Code {
	switch status {
	case http.StatusUnauthorized:
		return code.Code_UNAUTHENTICATED
	case http.StatusForbidden:
		return code.Code_PERMISSION_DENIED
	case http.StatusNotFound:
		return code.Code_NOT_FOUND
	case http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return code.Code_UNIMPLEMENTED
	case http.StatusConflict:
		return code.Code_ABORTED
	case http.StatusRequestEntityTooLarge, http.StatusTooManyRequests, http.StatusPaymentRequired:
		return code.Code_RESOURCE_EXHAUSTED
	case http.StatusInternalServerError:
		return code.Code_INTERNAL
	case http.StatusGatewayTimeout:
		return code.Code_DEADLINE_EXCEEDED
	}
	if status < http.StatusInternalServerError {
		return code.Code_INVALID_ARGUMENT
	}
	return code.Code_UNAVAILABLE
}
