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

// explain says in the record why the call failed, if it did. Weir's own words are kept also if
// content is omitted, except those of a 400, which may quote the request.
func (x *Exchange) explain() {
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

// named returns the type of an error: the provider's, or that of the status for text, a page or an
// unknown shape.
func named(errorType string, status int64) string {
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

// reportedError returns the provider's words for an error: those that were found as the answer
// passed, else those in the body that is kept of it. There are none if content is omitted, because
// they may quote it.
func reportedError(r *storage.Record, seen *plugins.ResponseInfo, body storage.Body) string {
	if r.RequestOmitted || r.ResponseOmitted || r.Status.N == storage.StatusClientLeft || seen.ErrorType == "" && r.ErrorType == "" && r.Status.N < http.StatusBadRequest {
		return ""
	}
	message := seen.ErrorMessage
	switch {
	case message != "":
	case strings.HasPrefix(body.Type, "text/event-stream"):
		for data := range streams.SSEData(body.Data) {
			if plugins.ValidJSON(data) {
				message = plugins.ErrorMessage(gjson.ParseBytes(data))
			}
		}
	case r.Status.N < http.StatusBadRequest && !plugins.ValidJSON(body.Data) && !bytes.HasPrefix(bytes.TrimSpace(body.Data), []byte("<")):
		// The text of an answer that broke off is content, and no error.
	default:
		message = plugins.ErrorMessage(plugins.ErrorBody(body.Data))
		if message == "" && strings.HasPrefix(body.Type, "text/plain") && !plugins.ValidJSON(body.Data) {
			message = string(body.Data[:min(len(body.Data), storage.MaxErrorMessage)])
		}
	}
	return redact.Message(message, storage.MaxErrorMessage)
}
