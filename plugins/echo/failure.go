package echo

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/weirhq/weir/plugins"
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

func openAIError(f *failure, _ *exchange) json.RawMessage {
	return render(`{"error":{"message":%s,"type":"invalid_request_error","param":%s,"code":%s}}`,
		f.message, json.RawMessage(plugins.AppendStringOrNull(nil, f.param)), json.RawMessage(plugins.AppendStringOrNull(nil, f.code)))
}

func anthropicError(f *failure, x *exchange) json.RawMessage {
	kind := "invalid_request_error"
	switch f.status {
	case http.StatusNotFound:
		kind = "not_found_error"
	case http.StatusRequestEntityTooLarge:
		kind = "request_too_large"
	}
	return render(`{"type":"error","error":{"type":%s,"message":%s},"request_id":%s}`, kind, f.message, x.id("req_"))
}
