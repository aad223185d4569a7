package llmlog

import (
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/weirhq/weir/plugins"
)

// refusal is an answer of our own in place of the provider's.
type refusal struct {
	status  int
	code    string
	message string
}

// write answers the refusal the way the dialect's provider would.
func (e *refusal) write(w http.ResponseWriter, d plugins.Dialect) error {
	body, err := json.Marshal(e.body(d))
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(e.status)
	_, err = w.Write(body)
	return err
}

func (e *refusal) body(d plugins.Dialect) any {
	switch d {
	case plugins.Messages, plugins.CountTokens:
		b := messagesError{Type: "error"}
		b.Error.Type, b.Error.Message = e.messagesType(), e.message
		return b
	case plugins.GenerateContent:
		var b googleError
		b.Error.Code, b.Error.Message, b.Error.Status = e.status, e.message, e.googleStatus()
		return b
	default:
		var b openAIError
		b.Error.Message, b.Error.Type, b.Error.Code = e.message, e.openAIType(), e.code
		return b
	}
}

// openAIError is what OpenAI answers, and everybody who follows it.
type openAIError struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	} `json:"error"`
}

func (e *refusal) openAIType() string {
	if e.status < http.StatusInternalServerError {
		return "invalid_request_error"
	}
	return "api_error"
}

// messagesError is what Anthropic answers.
type messagesError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
}

func (e *refusal) messagesType() string {
	switch {
	case e.status == http.StatusUnauthorized:
		return "authentication_error"
	case e.status == http.StatusForbidden:
		return "permission_error"
	case e.status == http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case e.status == http.StatusGatewayTimeout:
		return "timeout_error"
	case e.status < http.StatusInternalServerError:
		return "invalid_request_error"
	default:
		return "api_error"
	}
}

// googleError is what Gemini and Vertex answer.
type googleError struct {
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
	} `json:"error"`
}

// googleStatus is the code of google.rpc.Code that goes with the status.
func (e *refusal) googleStatus() string {
	switch {
	case e.status == http.StatusUnauthorized:
		return "UNAUTHENTICATED"
	case e.status == http.StatusForbidden:
		return "PERMISSION_DENIED"
	case e.status == http.StatusGatewayTimeout:
		return "DEADLINE_EXCEEDED"
	case e.status < http.StatusInternalServerError:
		return "INVALID_ARGUMENT"
	default:
		return "UNAVAILABLE"
	}
}
