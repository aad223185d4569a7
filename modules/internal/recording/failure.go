package recording

import (
	"html"
	"net/http"
	"regexp"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/internal/redact"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// explain says in the record why the call failed, if it did. Weir's own words are kept also if
// content is omitted, except those of a 400, which may quote the request.
func (x *Exchange) explain() {
	r := &x.Record
	switch e := x.Refusal; {
	case e == nil:
		r.ErrorMessage = reportedError(r, x.Info(), x.Kept.Content(r).Response)
	case r.RequestOmitted && e.Status == http.StatusBadRequest, r.Status.N == StatusClientLeft:
		r.ErrorMessage = ""
	default:
		r.ErrorMessage = redact.Message(e.Message, storage.MaxErrorMessage)
	}
}

// reportedError returns the provider's words for an error: those that were found as the answer
// passed, else those in the body that is kept of it. There are none if content is omitted, because
// they may quote it.
func reportedError(r *storage.Record, seen *plugins.ResponseInfo, body storage.Body) string {
	if r.RequestOmitted || r.ResponseOmitted || r.Status.N == StatusClientLeft || seen.ErrorType == "" && r.ErrorType == "" && r.Status.N < http.StatusBadRequest {
		return ""
	}
	message := seen.ErrorMessage
	title := pageTitle.FindSubmatch(body.Data[:min(len(body.Data), 4<<10)])
	switch {
	case message != "":
	case plugins.ValidJSON(body.Data):
		message = plugins.ErrorMessage(gjson.ParseBytes(body.Data))
	case title != nil: // of a proxy between Weir and the provider
		message = html.UnescapeString(string(title[1]))
	case strings.HasPrefix(body.Type, "text/plain"):
		message = string(body.Data[:min(len(body.Data), storage.MaxErrorMessage)])
	}
	return redact.Message(message, storage.MaxErrorMessage)
}

// pageTitle finds the title of an HTML page.
var pageTitle = regexp.MustCompile(`(?is)^\s*<(?:!doctype|html)\b.*?<title[^>]*>\s*(.*?)\s*</title>`)
