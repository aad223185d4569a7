// Package streamusage asks for the token usage of a stream of Chat Completions if its client does
// not, and removes the chunk with the usage from the answer.
package streamusage

import (
	"bytes"
	"mime"
	"net/http"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/plugins"
)

// Ask returns a request that asks for the usage of its stream, and whether the request had
// to be changed for that. With always, a client that wants no usage is overruled.
func Ask(body []byte, always bool) (asking []byte, changed bool) {
	const option = "stream_options.include_usage"
	if !gjson.GetBytes(body, "stream").Bool() || !plugins.ValidJSON(body) {
		return body, false
	}
	fields, wanted := 0, false // a library may take any of several
	gjson.GetBytes(body, "stream_options").ForEach(func(key, v gjson.Result) bool {
		if key.Str == "include_usage" {
			fields, wanted = fields+1, v.Type == gjson.True
		}
		return true
	})
	var err error
	switch {
	case fields == 1 && wanted, fields > 0 && !always:
		return body, false
	case fields > 1:
		body, err = sjson.DeleteBytes(body, "stream_options")
	}
	if err == nil {
		asking, err = sjson.SetBytes(body, option, true)
	}
	if err != nil {
		return body, false
	}
	return asking, true
}

// maxEvent bounds the bytes of an incomplete event that are held back: the chunk with the usage is
// short.
const maxEvent = 64 << 10

// Filter passes a stream of server-sent events on without the chunk that
// holds nothing but usage. An event goes out in the write that completes it.
type Filter struct {
	http.ResponseWriter
	active  bool   // the answer is a stream
	partial []byte // the incomplete event at the end of what was written
	long    bool   // the event is over maxEvent, and passes as it comes
}

// NewFilter returns a filter of what is written to w. Close must follow the stream.
func NewFilter(w http.ResponseWriter) *Filter {
	return &Filter{ResponseWriter: w}
}

// Unwrap is for http.ResponseController.
func (f *Filter) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (f *Filter) WriteHeader(status int) {
	header := f.Header()
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	if status == http.StatusOK && header.Get("Content-Encoding") == "" && mediaType == "text/event-stream" {
		f.active = true
		header.Del("Content-Length")
	}
	f.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (f *Filter) Write(p []byte) (int, error) {
	if !f.active {
		return f.ResponseWriter.Write(p)
	}
	pending := p
	if len(f.partial) > 0 {
		f.partial = append(f.partial, p...)
		pending = f.partial
	}
	written, next := 0, 0 // pending[written:next] is to go out
	for {
		n := EventLen(pending[next:])
		if n == 0 {
			break
		}
		if !f.long && n <= maxEvent && isUsageOnly(pending[next:next+n]) {
			if err := f.pass(pending[written:next]); err != nil {
				return 0, err
			}
			written = next + n
		}
		next += n
		f.long = false
	}
	if f.long = f.long || len(pending)-next > maxEvent; f.long {
		next += len(bytes.TrimRight(pending[next:], "\r\n")) // the rest may be the first half of a blank line
	}
	if err := f.pass(pending[written:next]); err != nil {
		return 0, err
	}
	f.partial = append(f.partial[:0], pending[next:]...)
	return len(p), nil
}

// pass writes bytes to the client.
func (f *Filter) pass(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	_, err := f.ResponseWriter.Write(p)
	return err
}

// Close passes on what is held at the end of the stream.
func (f *Filter) Close() {
	if f.long || !isUsageOnly(f.partial) {
		_ = f.pass(f.partial)
	}
	f.partial = nil
}

// EventLen returns the length of the first event in p with its blank line, 0 if the event is not
// complete. Lines end in LF, CRLF or CR.
func EventLen(p []byte) int {
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

// lineEnd returns the offset after the line end at i.
func lineEnd(p []byte, i int) int {
	if p[i] == '\r' && i+1 < len(p) && p[i+1] == '\n' {
		return i + 2
	}
	return i + 1
}

// isUsageOnly reports whether an event is a chunk with usage and no choices.
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
var _ http.ResponseWriter = (*Filter)(nil)
