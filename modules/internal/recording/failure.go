package recording

import (
	"bytes"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/plugins/streams"
	"github.com/weirhq/weir/storage"
)

// setErrorMessage sets why the call failed in the record, if it did. A message of Weir is recorded also if
// content is omitted, except that of a 400, which may quote the request.
func (x *Exchange) setErrorMessage() {
	r := &x.Record
	switch e := x.Refusal; {
	case e == nil:
		r.ErrorMessage = reportedError(r, x.Info(), x.Kept.Content(r).Response)
	case r.RequestOmitted && e.Status == http.StatusBadRequest, r.Status.N == storage.StatusClientLeft:
		r.ErrorMessage = ""
	default:
		r.ErrorMessage = redact.Message(e.Message, storage.MaxErrorMessage)
	}
}

// errorTypeOf returns the type of an error: the provider's, or that of the status if the provider names
// none, as in a text or a page. It is "" if there is no error.
func errorTypeOf(errorType string, status int64) string {
	switch failed := status >= http.StatusBadRequest && status != storage.StatusClientLeft; {
	case errorType != "" && errorType != observe.Unnamed:
		return errorType
	case failed:
		return plugins.Refused(int(status), "").Type
	case errorType == observe.Unnamed:
		return plugins.Refused(0, "").Type
	}
	return ""
}

// reportedError returns the provider's message of an error: the one that was seen as the answer
// passed, or else the one in the recorded body. It is "" if content is omitted, because
// the message may quote it.
func reportedError(r *storage.Record, seen *plugins.ResponseInfo, body storage.Body) string {
	if r.RequestOmitted || r.ResponseOmitted || r.Status.N == storage.StatusClientLeft || seen.ErrorType == "" && r.ErrorType == "" && r.Status.N < http.StatusBadRequest {
		return ""
	}
	message := seen.ErrorMessage
	if message == "" {
		message = errorIn(body, r.Status.N)
	}
	return redact.Message(message, storage.MaxErrorMessage)
}

// errorIn returns the message of the error in the body of an answer with this status, "" if it has none.
func errorIn(body storage.Body, status int64) (message string) {
	if strings.HasPrefix(body.Type, "text/event-stream") {
		for data := range streams.SSEData(body.Data) {
			if plugins.ValidJSON(data) {
				message = plugins.ErrorMessage(gjson.ParseBytes(data))
			}
		}
		return message
	}
	isJSON := plugins.ValidJSON(body.Data)
	if status < http.StatusBadRequest && !isJSON && !bytes.HasPrefix(bytes.TrimSpace(body.Data), []byte("<")) {
		return "" // the text of an answer that broke off is content, and no error
	}
	message = plugins.ErrorMessage(plugins.ErrorBody(body.Data))
	if message == "" && !isJSON && strings.HasPrefix(body.Type, "text/plain") {
		message = string(body.Data[:min(len(body.Data), storage.MaxErrorMessage)])
	}
	return message
}
