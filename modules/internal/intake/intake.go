// Package intake is the one door through which bytes of clients come in: bodies of any
// Content-Encoding, chunked or not, and messages of WebSockets that end here. What is
// read, and what becomes of it, is held against the memory of requests until the call
// releases it. The linter refuses every other way to a body (forbidigo in .golangci.yml).
package intake

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/coding"
)

const (
	// copies is how many copies of a body a call holds at worst: what came, what was
	// parsed of it, what is sent, and what is recorded.
	copies = 4
	// firstRead is how many bytes are read before more memory is asked for, of a body
	// whose length is not announced.
	firstRead = 16 << 10
	// unhurried is up to how many bytes a body may take any time to come.
	unhurried = 64 << 10
	// readTimeout bounds how long a longer body may take to come, because it keeps others
	// waiting.
	readTimeout = 2 * time.Minute
)

// Reader reads what clients send to an endpoint.
type Reader struct {
	Memory *admission.Memory
	// Most is the longest body, in bytes, with its Content-Encoding and without.
	Most int64
}

// Body is what a client has sent. Whoever has it calls Release.
type Body struct {
	// Bytes are those of the body without its Content-Encoding.
	Bytes []byte
	// Wire is how many bytes came, with their Content-Encoding.
	Wire int64

	held admission.Held
}

// Release gives the memory back that the body takes.
func (b *Body) Release() { b.held.Release() }

// Grow waits for the memory of so many bytes that join the body, such as an earlier
// conversation. What would be refused as a body is refused.
func (b *Body) Grow(ctx context.Context, joining int64) error {
	size := int64(len(b.Bytes)) + joining
	if most := b.held.Largest() / copies; size > most {
		return plugins.Rejected(http.StatusRequestEntityTooLarge, "request_too_large",
			"The request has %d bytes with what it continues, and the gateway has memory for %d: see request_memory.", size, most)
	}
	return b.hold(ctx, copies*size)
}

// hold makes the body hold so many bytes.
func (b *Body) hold(ctx context.Context, n int64) error {
	if err := b.held.Resize(ctx, n); err != nil {
		return err
	}
	return nil
}

// fitting returns rd for what the memory can hold with its copies.
func (rd Reader) fitting() Reader {
	rd.Most = min(rd.Most, rd.Memory.Largest()/copies)
	return rd
}

// Read reads the body of a request once there is memory for it. Its errors are of the
// type *plugins.Error. A body that comes with an error is what was read before it.
func (rd Reader) Read(w http.ResponseWriter, r *http.Request) (Body, error) {
	if given, ok := r.Body.(*given); ok {
		return given.take(), nil
	}
	rd = rd.fitting()
	if r.ContentLength > rd.Most {
		return Body{}, rd.tooLong()
	}
	wire := &counter{in: r.Body}
	var in io.Reader = wire
	announced := r.ContentLength
	if encoding := strings.Join(r.Header["Content-Encoding"], ","); encoding != "" {
		decoded, ok := coding.NewReader(encoding, wire, rd.Most)
		if !ok {
			return Body{}, plugins.Rejected(http.StatusUnsupportedMediaType, "unsupported_content_encoding",
				"Send the body in up to three of the encodings gzip, deflate, br and zstd, or without Content-Encoding.")
		}
		defer decoded.Close()
		in, announced = decoded, -1
	}
	b, err := rd.fill(r.Context(), in, announced, func(t time.Time) error {
		return http.NewResponseController(w).SetReadDeadline(t)
	})
	b.Wire = wire.n
	return b, rd.broken(err)
}

// ReadJSON reads the body of a request into v, by Decode.
func (rd Reader) ReadJSON(w http.ResponseWriter, r *http.Request, v any) error {
	b, err := rd.Read(w, r)
	defer b.Release()
	if err != nil {
		return err
	}
	return Decode(b.Bytes, v)
}

// ReadAhead reads the body of a request that is passed on, where it can be read again. It
// waits for no memory. refused says why b is not the whole body: it is longer than Most, or
// memory is short. err says why the body cannot be read.
func (rd Reader) ReadAhead(r *http.Request) (b Body, refused *plugins.Error, err error) {
	rd = rd.fitting()
	if r.ContentLength > rd.Most {
		return b, rd.tooLong(), nil
	}
	now, cancel := context.WithCancel(r.Context())
	cancel()
	b, err = rd.fill(now, r.Body, r.ContentLength, nil)
	if ours, ok := errors.AsType[*plugins.Error](err); ok {
		refused, err = ours, nil
	}
	r.Body = &ahead{r.Body, b.Bytes, err}
	return b, refused, err
}

// ahead is a body whose first bytes were read already.
type ahead struct {
	io.ReadCloser
	first []byte
	err   error // behind them, nil if more is to be read
}

func (a *ahead) Read(p []byte) (n int, err error) {
	if len(a.first) > 0 {
		n = copy(p, a.first)
		a.first = a.first[n:]
		return n, nil
	}
	if a.err != nil {
		return 0, a.err
	}
	return a.ReadCloser.Read(p)
}

// fill reads in to its end. setDeadline may be nil.
func (rd Reader) fill(ctx context.Context, in io.Reader, announced int64, setDeadline func(time.Time) error) (b Body, err error) {
	size := announced
	if announced < 0 {
		size = min(firstRead, rd.Most)
	}
	var refused *plugins.Error
	if b.held, refused = rd.Memory.Hold(ctx, copies*size); refused != nil {
		return b, refused
	}
	b.Bytes = make([]byte, 0, size+1) // one more, to see the end
	for err == nil {
		if n := len(b.Bytes); n == cap(b.Bytes) {
			if err = rd.enlarge(ctx, &b); err != nil {
				return b, err
			}
		}
		if setDeadline != nil && cap(b.Bytes) > unhurried {
			if setDeadline(time.Now().Add(readTimeout)) == nil { // not every server can
				defer func(done func(time.Time) error) { _ = done(time.Time{}) }(setDeadline)
			}
			setDeadline = nil
		}
		var n int
		n, err = in.Read(b.Bytes[len(b.Bytes):cap(b.Bytes)])
		b.Bytes = b.Bytes[:len(b.Bytes)+n]
		if int64(len(b.Bytes)) > rd.Most {
			return b, rd.tooLong()
		}
	}
	if err != io.EOF { //nolint:errorlint // a body that was cut off wraps it
		return b, err
	}
	return b, b.hold(ctx, copies*int64(len(b.Bytes)))
}

// enlarge makes room for more of a body whose length is not known. One that is not small
// takes as much memory as the largest one until it is read: so it never waits for more
// while others wait for what it holds.
func (rd Reader) enlarge(ctx context.Context, b *Body) error {
	size := min(2*int64(cap(b.Bytes)), rd.Most+1)
	hold := copies * size
	if hold > admission.Small {
		hold = copies * rd.Most
	}
	if err := b.hold(ctx, hold); err != nil {
		return err
	}
	b.Bytes = append(make([]byte, 0, size), b.Bytes...)
	return nil
}

func (rd Reader) tooLong() *plugins.Error {
	return plugins.Rejected(http.StatusRequestEntityTooLarge, "request_too_large", "The body is over %d bytes long.", rd.Most)
}

// broken is what a client is told of a body that cannot be read.
func (rd Reader) broken(err error) error {
	if _, told := errors.AsType[*plugins.Error](err); err == nil || told {
		return err
	}
	if _, bounded := errors.AsType[*http.MaxBytesError](err); bounded || errors.Is(err, coding.ErrTooLong) {
		return rd.tooLong()
	}
	return plugins.Invalid("", "The body of the request could not be read, or decoded by its Content-Encoding.")
}

// counter counts the bytes on the wire.
type counter struct {
	in io.Reader
	n  int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.n += int64(n)
	return n, err
}

// given is the body of a request that was received in another way.
type given struct{ Body }

// Give makes the body that of a request, where Read finds it. The memory goes with it.
// release gives it back if nobody has read the body.
func (b *Body) Give(r *http.Request) (release func(), err error) {
	if err := b.Grow(r.Context(), 0); err != nil {
		return nil, err
	}
	g := &given{*b}
	r.Body, r.ContentLength = g, int64(len(b.Bytes))
	b.held = admission.Held{}
	return g.Release, nil
}

func (g *given) take() (b Body) {
	b, g.Body = g.Body, Body{}
	return b
}

// Read implements io.Reader for those who do not know the door: nothing is there.
func (*given) Read([]byte) (int, error) { return 0, io.EOF }

// Close releases a body that nobody has read.
func (g *given) Close() error {
	g.Release()
	return nil
}
