package echo

import (
	"fmt"
	"net/http"
)

// failure is why a request is refused.
type failure struct {
	status  int
	message string
	param   string // the field at fault, if it is one
	code    string // OpenAI's, if it has one
}

// invalid is the failure of a request whose field param is at fault.
func invalid(param, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...), param: param}
}

type openAIErrorBody struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

func openAIError(f *failure, _ *exchange) any {
	var b openAIErrorBody
	b.Error.Message = f.message
	b.Error.Type = "invalid_request_error"
	if f.param != "" {
		b.Error.Param = &f.param
	}
	if f.code != "" {
		b.Error.Code = &f.code
	}
	return b
}

type anthropicErrorBody struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

func anthropicError(f *failure, x *exchange) any {
	b := anthropicErrorBody{Type: "error", RequestID: x.id("req_")}
	b.Error.Message = f.message
	switch f.status {
	case http.StatusNotFound:
		b.Error.Type = "not_found_error"
	case http.StatusRequestEntityTooLarge:
		b.Error.Type = "request_too_large"
	default:
		b.Error.Type = "invalid_request_error"
	}
	return b
}
