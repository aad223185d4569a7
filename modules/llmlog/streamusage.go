package llmlog

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/plugins"
)

// askForUsage adds stream_options.include_usage to a chat request that streams
// and does not say. It tells whether it did; the answer then has a chunk that
// the client must not see.
func (x *exchange) askForUsage() bool {
	if x.r.Body == nil || x.r.Body == http.NoBody {
		return false
	}
	if contentEncoding(x.r.Header) != "" {
		x.warnings = append(x.warnings, "stream_usage: not asked for, the request has a Content-Encoding")
		return false
	}
	sent, refused, err := intake.Reader{Memory: x.h.site.App.Memory(), Most: int64(x.h.MaxBody)}.ReadAhead(x.r)
	x.ahead = sent
	switch {
	case err != nil:
		return false
	case refused != nil && refused.Status == http.StatusRequestEntityTooLarge:
		x.warnings = append(x.warnings, "stream_usage: not asked for, the request is longer than max_body")
		return false
	case refused != nil:
		x.warnings = append(x.warnings, "stream_usage: not asked for, the requests of other calls take all memory")
		return false
	}
	asking, asks := withUsage(sent.Bytes)
	if !asks {
		return false
	}
	x.r.Body = replay{bytes.NewReader(asking), x.r.Body}
	x.r.ContentLength = int64(len(asking))
	x.r.Header["Content-Length"] = []string{strconv.Itoa(len(asking))}
	x.r.Header["Accept-Encoding"] = []string{"identity"} // or the chunk could not be found
	return true
}

// withUsage is a chat request that asks for usage, and whether it had to be
// changed for that.
func withUsage(body []byte) (asking []byte, changed bool) {
	const option = "stream_options.include_usage"
	if !plugins.ValidJSON(body) || !gjson.GetBytes(body, "stream").Bool() || gjson.GetBytes(body, option).Exists() {
		return body, false
	}
	asking, err := sjson.SetBytes(body, option, true)
	if err != nil {
		return body, false
	}
	return asking, true
}

// replay is a body with other bytes.
type replay struct {
	io.Reader
	io.Closer
}

// maxEvent bounds what is held of an event whose end has not come: the chunk to
// take out is short.
const maxEvent = 64 << 10

// usageFilter passes a stream of server-sent events on without the chunk that
// holds nothing but usage. An event goes out in the write that completes it.
type usageFilter struct {
	caddyhttp.ResponseWriterWrapper
	active bool
	held   []byte // the event whose end has not come
	long   bool   // the event is over maxEvent, and passes as it comes
}

func newUsageFilter(w http.ResponseWriter) *usageFilter {
	return &usageFilter{ResponseWriterWrapper: caddyhttp.ResponseWriterWrapper{ResponseWriter: w}}
}

// WriteHeader implements http.ResponseWriter.
func (f *usageFilter) WriteHeader(status int) {
	header := f.Header()
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if status == http.StatusOK && contentEncoding(header) == "" && mediaType == "text/event-stream" {
		f.active = true
		header.Del("Content-Length")
	}
	f.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (f *usageFilter) Write(p []byte) (int, error) {
	if !f.active {
		return f.ResponseWriter.Write(p)
	}
	pending := p
	if len(f.held) > 0 {
		f.held = append(f.held, p...)
		pending = f.held
	}
	kept, next := 0, 0 // pending[kept:next] is to go out
	for {
		n := eventLen(pending[next:])
		if n == 0 {
			break
		}
		if !f.long && n <= maxEvent && isUsageOnly(pending[next:next+n]) {
			if err := f.pass(pending[kept:next]); err != nil {
				return 0, err
			}
			kept = next + n
		}
		next += n
		f.long = false
	}
	if f.long = f.long || len(pending)-next > maxEvent; f.long {
		next += len(bytes.TrimRight(pending[next:], "\r\n")) // the rest may be the first half of a blank line
	}
	if err := f.pass(pending[kept:next]); err != nil {
		return 0, err
	}
	f.held = append(f.held[:0], pending[next:]...)
	return len(p), nil
}

func (f *usageFilter) pass(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := f.ResponseWriter.Write(p)
	return err
}

// flush passes on what is held at the end of the stream.
func (f *usageFilter) flush() {
	if f.long || !isUsageOnly(f.held) {
		_ = f.pass(f.held)
	}
	f.held = nil
}

// eventLen is the length of the first event in p with its blank line, 0 when p
// does not hold the whole of it. Lines end in LF, CRLF or CR.
func eventLen(p []byte) int {
	for at := 0; ; {
		i := bytes.IndexAny(p[at:], "\r\n")
		if i < 0 {
			return 0
		}
		at = lineEnd(p, at+i)
		if at == len(p) {
			return 0
		}
		if half := at+1 == len(p) && p[at] == '\r' && p[at-1] == '\n'; half {
			return 0 // its LF is on the way
		}
		if p[at] == '\n' || p[at] == '\r' {
			return lineEnd(p, at)
		}
	}
}

// lineEnd is the offset behind the line end at i.
func lineEnd(p []byte, i int) int {
	if p[i] == '\r' && i+1 < len(p) && p[i+1] == '\n' {
		return i + 2
	}
	return i + 1
}

// isUsageOnly tells whether an event is a chunk with usage and no choices.
func isUsageOnly(event []byte) bool {
	if !bytes.Contains(event, []byte(`"usage"`)) {
		return false
	}
	_, data, ok := bytes.Cut(event, []byte("data:"))
	if !ok {
		return false
	}
	choices := gjson.GetBytes(data, "choices")
	return choices.IsArray() && len(choices.Array()) == 0 && gjson.GetBytes(data, "usage").IsObject()
}

// Interface guard
var _ http.ResponseWriter = (*usageFilter)(nil)
