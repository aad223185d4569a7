package llmgateway

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/weirhq/weir/plugins"
)

// errorAnswer is what callers get in place of a response (OpenAI's form).
type errorAnswer struct {
	Error errorInfo `json:"error"`
}

// messagesError is the same in Anthropic's form.
type messagesError struct {
	Type  string            `json:"type"`
	Error messagesErrorInfo `json:"error"`
}

type messagesErrorInfo struct {
	Type     string          `json:"type"`
	Message  string          `json:"message"`
	Attempts []attemptReport `json:"attempts,omitempty"`
}

type errorInfo struct {
	Message  string          `json:"message"`
	Type     string          `json:"type"`
	Param    *string         `json:"param"`
	Code     *string         `json:"code"`
	Attempts []attemptReport `json:"attempts,omitempty"`
}

// attemptReport tells of one failed attempt.
type attemptReport struct {
	Target  string `json:"target"`
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// writeError answers e as the dialect has it, and tells of the attempts that led
// to it.
func writeError(w http.ResponseWriter, d plugins.Dialect, e *plugins.Error, attempts []attemptReport) error {
	body, err := json.Marshal(errorBody(d, e, attempts))
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	if e.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(math.Ceil(float64(e.RetryAfter)/float64(time.Second)))))
	}
	w.WriteHeader(e.Status)
	_, err = w.Write(body)
	return err
}

func errorBody(d plugins.Dialect, e *plugins.Error, attempts []attemptReport) any {
	if anthropics(d) {
		return messagesError{"error", messagesErrorInfo{messagesType(e.Status), e.Message, attempts}}
	}
	return errorAnswer{newErrorInfo(e, attempts)}
}

func newErrorInfo(e *plugins.Error, attempts []attemptReport) errorInfo {
	info := errorInfo{Message: e.Message, Type: e.Type, Attempts: attempts}
	if e.Param != "" {
		info.Param = &e.Param
	}
	if e.Code != "" {
		info.Code = &e.Code
	}
	return info
}

// messagesType is the type that Anthropic gives errors of a status
// (https://platform.claude.com/docs/en/api/errors).
func messagesType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable:
		return "overloaded_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	}
	if status < http.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "api_error"
}

// reports tells of attempts where there was a choice.
func reports(failures []failure) []attemptReport {
	if len(failures) == 1 && failures[0].next == giveUp {
		return nil
	}
	var list []attemptReport
	for _, f := range failures {
		list = append(list, attemptReport{f.target.name(), f.err.Status, f.err.Message})
	}
	return list
}

func methodNotAllowed(w http.ResponseWriter, d plugins.Dialect, allow string) error {
	w.Header().Set("Allow", allow)
	return writeError(w, d, &plugins.Error{
		Status: http.StatusMethodNotAllowed, Type: "invalid_request_error", Code: "method_not_allowed",
		Message: "This endpoint takes " + allow + ".",
	}, nil)
}

// denied is a refusal for want of a right.
func denied(status int, code, message string) *plugins.Error {
	return &plugins.Error{Status: status, Type: "invalid_request_error", Code: code, Message: message}
}
