package llmlog

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/streamusage"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// clientRequest is the request of a client on its way to the provider. It is read as it passes, and
// before if something depends on what it asks for.
type clientRequest struct {
	limit  int64             // of what is kept of the body, and read before it passes, in bytes
	memory *admission.Memory // that bodies take which are read before they pass
	ahead  intake.Body       // what was read of the body before it passes
	late   *plugins.Error    // the body did not come in time, nil if it did
	body   capture.Body
	reader *observe.RequestReader
	upload *bound.Upload // the calls of a batch in the file that the request uploads, nil for any other
}

// hasBody reports whether a request has a body.
func hasBody(r *http.Request) bool {
	return r.Body != nil && r.Body != http.NoBody //nolint:forbidigo // nothing is read
}

// contentEncoding joins the Content-Encoding headers, as a list may be split.
func contentEncoding(header http.Header) string {
	return strings.Join(header["Content-Encoding"], ", ")
}

// watch puts itself between r and who reads its body. open chooses what reads the body as it passes.
func (q *clientRequest) watch(r *http.Request, open func(*capture.Tap, int64)) {
	if !hasBody(r) {
		return
	}
	q.body.ReadCloser = r.Body //nolint:forbidigo // the body passes as it comes
	q.body.Length = r.ContentLength
	q.body.Look(open)
	r.Body = &q.body //nolint:forbidigo // likewise
	q.body.KeepWire(q.limit)
	r.GetBody = q.again
}

var errNotKept = errors.New("the body of the request is longer than max_body, so that it cannot be sent again")

// again is GetBody of the request, for a transport that has lost its connection.
func (q *clientRequest) again() (io.ReadCloser, error) {
	body, ok := q.body.Replay()
	if !ok {
		return nil, errNotKept
	}
	return body, nil
}

// readAhead reads the body before it passes. refused says why the gateway has not the whole body.
func (q *clientRequest) readAhead(w http.ResponseWriter, r *http.Request) (refused *plugins.Error, err error) {
	q.ahead.Release() // if the body was read to ask for usage, it is read again
	q.ahead, refused, err = intake.Reader{Memory: q.memory, Limit: q.limit}.ReadAhead(w, r)
	return refused, err
}

// read returns the body for what the call may cost. It passes afterwards.
func (q *clientRequest) read(w http.ResponseWriter, r *http.Request) ([]byte, *plugins.Error) {
	if !hasBody(r) || r.Method == http.MethodConnect {
		return nil, nil
	}
	if contentEncoding(r.Header) != "" {
		e := plugins.Invalid("", "The gateway has to read this call before it passes: send the body without Content-Encoding.")
		e.Status = http.StatusUnsupportedMediaType
		return nil, e
	}
	refused, err := q.readAhead(w, r)
	if err != nil {
		return nil, plugins.Invalid("", "The body of the request broke off.")
	}
	return q.ahead.Bytes, refused
}

// askForUsage adds stream_options.include_usage to a chat request that streams and does not say. If
// it did, the answer has a chunk that the client must not see. If it could not, the warning says why.
func (q *clientRequest) askForUsage(w http.ResponseWriter, r *http.Request) (asked bool, warning string) {
	if !hasBody(r) {
		return false, ""
	}
	if contentEncoding(r.Header) != "" {
		return false, "the request has a Content-Encoding"
	}
	refused, err := q.readAhead(w, r)
	switch {
	case err != nil:
		return false, ""
	case refused != nil && refused.Status == http.StatusRequestEntityTooLarge:
		return false, "the request is longer than max_body"
	case refused != nil && refused.Status == http.StatusRequestTimeout:
		q.late = refused
		return false, ""
	case refused != nil:
		return false, "the requests of other calls take all memory"
	}
	asking, asks := streamusage.Ask(q.ahead.Bytes, false)
	if !asks {
		return false, ""
	}
	r.Body = replay{bytes.NewReader(asking), r.Body} //nolint:forbidigo // the body passes, and asks for more
	r.ContentLength = int64(len(asking))
	r.Header["Content-Length"] = []string{strconv.Itoa(len(asking))}
	r.Header["Accept-Encoding"] = []string{"identity"} // or the chunk could not be found
	return true, ""
}

// replay is a body with other bytes.
type replay struct {
	io.Reader
	io.Closer
}

// unsentTimeout bounds how long the request of a call that reached no provider is read.
const unsentTimeout = 5 * time.Second

// readUnsent reads the request of a call that no provider has read, so that its record says
// what was asked, of which model.
func (q *clientRequest) readUnsent(w http.ResponseWriter, r *http.Request) {
	if !hasBody(r) || r.Method == http.MethodConnect {
		return
	}
	connection := http.NewResponseController(w)
	if connection.SetReadDeadline(time.Now().Add(unsentTimeout)) != nil {
		return
	}
	if body, ok := q.body.Replay(); ok {
		_, _ = io.Copy(io.Discard, io.LimitReader(body, q.limit)) // the record has what has come
	}
	_ = connection.SetReadDeadline(time.Time{}) // the server sets its own for the next request
}

// freeSent frees what the provider has got, once it answers.
func (q *clientRequest) freeSent() {
	q.ahead.Release()
	q.body.FreeWire()
}

// free ends the reading. A transport may still read the body.
func (q *clientRequest) free() {
	q.body.Detach()
	if q.upload != nil {
		q.upload.Free()
	}
	q.ahead.Release()
	q.reader.Free()
	q.reader = nil
}
