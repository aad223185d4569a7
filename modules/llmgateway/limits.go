package llmgateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/coding"
	"github.com/weirhq/weir/plugins/translate"
)

const (
	// maxRequest bounds the body of a request, in bytes.
	maxRequest = 64 << 20
	// readTimeout bounds how long the body of a request that is not small may take
	// to come, because it keeps others waiting.
	readTimeout = 2 * time.Minute
	// maxValues bounds how many JSON values a request that is parsed has, and
	// maxDepth how deep they are nested: each takes a multiple of its bytes.
	maxValues = 250_000
	maxDepth  = 256
)

// readBody reads the body without its Content-Encoding, once there is memory for it.
// A body that does not tell its length, or not that of what it decodes to, and is not
// small takes as much as the largest one until it is read.
func (c *call) readBody() error {
	announced := c.r.ContentLength
	if announced > maxRequest {
		return tooLarge()
	}
	wire := &countingReader{in: c.r.Body}
	defer func() { c.exchange.Record.RequestBytes = wire.n }()
	var in io.Reader = wire
	if encoding := strings.Join(c.r.Header["Content-Encoding"], ","); encoding != "" {
		decoded, ok := coding.NewReader(encoding, wire, maxRequest)
		if !ok {
			return rejected(http.StatusUnsupportedMediaType, "unsupported_content_encoding",
				"Send the body in up to three of the encodings gzip, deflate, br and zstd, or without Content-Encoding.")
		}
		defer decoded.Close()
		in, announced = decoded, -1
	}
	first := announced
	if announced < 0 {
		first = admission.Small
	}
	if err := c.hold(first); err != nil {
		return err
	}
	begin, err := translate.ReadAll(io.LimitReader(in, admission.Small+1), announced)
	body := bytes.NewBuffer(begin)
	if err == nil && body.Len() > admission.Small {
		err = c.readRest(body, in, announced)
	}
	c.body = body.Bytes()
	c.held.Reduce(int64(body.Len())) // of a length that was not announced
	if body.Len() > maxRequest || errors.Is(err, coding.ErrTooLong) {
		return tooLarge()
	}
	if _, ours := errors.AsType[*plugins.Error](err); err != nil && !ours {
		return plugins.Invalid("", "The body of the request could not be read, or decoded by its Content-Encoding.")
	}
	return err
}

// countingReader counts the bytes on the wire.
type countingReader struct {
	in io.Reader
	n  int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.n += int64(n)
	return n, err
}

// readRest reads the body of a request that is not small.
func (c *call) readRest(body *bytes.Buffer, in io.Reader, announced int64) error {
	if announced < 0 {
		if err := c.hold(maxRequest); err != nil {
			return err
		}
	} else {
		body.Grow(int(announced) - body.Len() + bytes.MinRead)
	}
	control := http.NewResponseController(c.w)
	if control.SetReadDeadline(time.Now().Add(readTimeout)) == nil { // not every server can
		defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	}
	_, err := body.ReadFrom(io.LimitReader(in, maxRequest+1-int64(body.Len())))
	return err
}

// hold waits for memory for a request of so many bytes.
func (c *call) hold(n int64) error {
	c.held.Release()
	var err *plugins.Error
	if c.held, err = c.h.site.App.Memory().Hold(c.ctx, n); err != nil {
		return err
	}
	return nil
}

func tooLarge() *plugins.Error {
	return rejected(http.StatusRequestEntityTooLarge, "request_too_large", fmt.Sprintf("The body is over %d bytes long.", maxRequest))
}

// checkSize refuses a body that would take a multiple of its length when it is
// parsed. The conversation is in the field itemsField.
func (h *Handler) checkSize(body []byte, itemsField string) error {
	values, depth := shape(body)
	items := elements(body, itemsField, h.MaxItems)
	tools := elements(body, "tools", h.MaxTools)
	for _, l := range [...]struct {
		limit       metric.Label
		param, what string
		n, most     int
	}{
		{metric.Constant("values"), "", "The request has more than %d JSON values.", values, maxValues},
		{metric.Constant("depth"), "", "The request is nested deeper than %d levels.", depth, maxDepth},
		{metric.Constant("items"), itemsField, "The input has more than %d items.", items, h.MaxItems},
		{metric.Constant("tools"), "tools", "The request has more than %d tools.", tools, h.MaxTools},
	} {
		if l.n > l.most {
			admission.Refusals.With(l.limit).Inc()
			e := rejected(http.StatusRequestEntityTooLarge, "request_too_large", fmt.Sprintf(l.what, l.most))
			e.Param = l.param
			return e
		}
	}
	return nil
}

// text is a view of a body that nobody changes, which may be too large to copy.
func text(body []byte) string { return unsafe.String(unsafe.SliceData(body), len(body)) }

// elements counts those of an array of the body, up to one more than most.
func elements(body []byte, field string, most int) (n int) {
	array := gjson.Get(text(body), field)
	if !array.IsArray() {
		return 0
	}
	array.ForEach(func(_, _ gjson.Result) bool {
		n++
		return n <= most
	})
	return n
}

// shape counts the values of valid JSON and how deep they are nested. It allocates
// nothing.
func shape(body []byte) (values, depth int) {
	level := 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			for {
				end := bytes.IndexByte(body[i+1:], '"')
				if end < 0 {
					return values, depth
				}
				i += 1 + end
				slashes := 0
				for body[i-1-slashes] == '\\' {
					slashes++
				}
				if slashes%2 == 0 {
					break
				}
			}
		case '{', '[':
			values++
			level++
			depth = max(depth, level)
		case '}', ']':
			level--
		case ',':
			values++
		}
	}
	return values, depth
}
