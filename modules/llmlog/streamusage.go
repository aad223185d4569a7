package llmlog

import (
	"bytes"
	"io"
	"net/http"
	"strconv"

	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/internal/streamusage"
	"github.com/weirhq/weir/plugins"
)

// askForUsage adds stream_options.include_usage to a chat request that streams
// and does not say. It tells whether it did; the answer then has a chunk that
// the client must not see.
func (x *exchange) askForUsage(w http.ResponseWriter) bool {
	if !hasBody(x.r) {
		return false
	}
	if contentEncoding(x.r.Header) != "" {
		x.warnings = append(x.warnings, "stream_usage: not asked for, the request has a Content-Encoding")
		return false
	}
	refused, err := x.readAhead(w)
	switch {
	case err != nil:
		return false
	case refused != nil && refused.Status == http.StatusRequestEntityTooLarge:
		x.warnings = append(x.warnings, "stream_usage: not asked for, the request is longer than max_body")
		return false
	case refused != nil && refused.Status == http.StatusRequestTimeout:
		x.late = refused
		return false
	case refused != nil:
		x.warnings = append(x.warnings, "stream_usage: not asked for, the requests of other calls take all memory")
		return false
	}
	asking, asks := streamusage.Ask(x.ahead.Bytes, false)
	if !asks {
		return false
	}
	x.r.Body = replay{bytes.NewReader(asking), x.r.Body} //nolint:forbidigo // the body passes, and asks for more
	x.r.ContentLength = int64(len(asking))
	x.r.Header["Content-Length"] = []string{strconv.Itoa(len(asking))}
	x.r.Header["Accept-Encoding"] = []string{"identity"} // or the chunk could not be found
	return true
}

// readAhead reads the body before it passes. refused says why the gateway has not the whole body.
func (x *exchange) readAhead(w http.ResponseWriter) (refused *plugins.Error, err error) {
	x.ahead.Release() // if the body was read to ask for usage, it is read again
	x.ahead, refused, err = intake.Reader{Memory: x.memory, Limit: int64(x.h.MaxBody)}.ReadAhead(w, x.r)
	return refused, err
}

// replay is a body with other bytes.
type replay struct {
	io.Reader
	io.Closer
}
