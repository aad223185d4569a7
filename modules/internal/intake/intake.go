// Package intake is the one door through which bytes of clients come in: bodies of any
// Content-Encoding, chunked or not, and messages of WebSockets that end here. What is
// read, and what becomes of it, is held against the memory of requests until the call
// releases it. The linter refuses every other way to a body (forbidigo in .golangci.yml).
package intake

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/coding"
)

const (
	// copies is how many copies of a body a call holds at worst: what came, what was
	// parsed of it, what is sent, and what is recorded.
	copies = 4
	// firstRead is how many bytes of a body are read before more memory is asked for than a body
	// takes of which nothing has come, and trust how much the announcement of a length gets then.
	firstRead = 4 << 10
	trust     = 64 << 10
	// growth is how many times what has come an announced length gets then, so that a body is not
	// copied too often.
	growth = 4
	// patience is how long a body may take to come, beside a second for each leastRate bytes.
	patience  = 20 * time.Second
	leastRate = 32 << 10
)

// firstReads are the memory of bodies of which nothing has come.
var firstReads = sync.Pool{New: func() any { return new([firstRead]byte) }}

// Reader reads what clients send to an endpoint.
type Reader struct {
	Memory *admission.Memory
	// Limit is the longest body, in bytes, with its Content-Encoding and without.
	Limit int64
}

// Body is what a client has sent. Whoever has it calls Release.
type Body struct {
	// Bytes are those of the body without its Content-Encoding.
	Bytes []byte
	// Wire is how many bytes came, with their Content-Encoding.
	Wire int64

	reservation admission.Reservation
}

// Release gives the memory back that the body takes.
func (b *Body) Release() { b.reservation.Release() }

// Grow waits for the memory of further bytes of the body, such as an earlier conversation. It refuses
// what Read would refuse as a body.
func (b *Body) Grow(ctx context.Context, joining int64) error {
	size := int64(len(b.Bytes)) + joining
	if largest := b.reservation.Largest() / copies; size > largest {
		return plugins.Rejected(http.StatusRequestEntityTooLarge, "request_too_large",
			"The request has %d bytes with what it continues, and the gateway has memory for %d: see request_memory.", size, largest)
	}
	return b.hold(ctx, copies*size)
}

// hold resizes the reservation of the body.
func (b *Body) hold(ctx context.Context, n int64) error {
	if err := b.reservation.Resize(ctx, n); err != nil {
		return err
	}
	return nil
}

// withinMemory returns rd for what the memory can hold with its copies.
func (rd Reader) withinMemory() Reader {
	rd.Limit = min(rd.Limit, rd.Memory.Largest()/copies)
	return rd
}

// Read reads the body of a request once there is memory for it. Its errors are of the
// type *plugins.Error. A body that comes with an error is what was read before it.
func (rd Reader) Read(w http.ResponseWriter, r *http.Request) (Body, error) {
	if body, ok := r.Body.(*givenBody); ok {
		return body.take(), nil
	}
	rd = rd.withinMemory()
	if r.ContentLength > rd.Limit {
		return Body{}, rd.tooLong()
	}
	wire := &counter{in: r.Body}
	var in io.Reader = wire
	announced := r.ContentLength
	if encoding := strings.Join(r.Header["Content-Encoding"], ","); encoding != "" {
		decoded, ok := coding.NewReader(encoding, wire, rd.Limit)
		if !ok {
			return Body{}, plugins.Rejected(http.StatusUnsupportedMediaType, "unsupported_content_encoding",
				"Send the body in up to three of the encodings gzip, deflate, br and zstd, or without Content-Encoding.")
		}
		defer decoded.Close()
		in, announced = decoded, -1
	}
	b, err := rd.fill(r.Context(), in, announced, http.NewResponseController(w).SetReadDeadline)
	b.Wire = wire.n
	return b, rd.readError(w, r, err)
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
// waits for no memory. refused says why b is not the whole body: it is longer than Limit, memory is
// short, or the body did not come in time. err says why the body cannot be read.
func (rd Reader) ReadAhead(w http.ResponseWriter, r *http.Request) (b Body, refused *plugins.Error, err error) {
	rd = rd.withinMemory()
	if r.ContentLength > rd.Limit {
		return b, rd.tooLong(), nil
	}
	b, err = rd.fill(over, r.Body, r.ContentLength, http.NewResponseController(w).SetReadDeadline)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return b, lateError(w, r), nil
	}
	if ours, ok := errors.AsType[*plugins.Error](err); ok {
		refused, err = ours, nil
	}
	r.Body = &ahead{r.Body, b.Bytes, err}
	return b, refused, err
}

// over is a context in which nothing waits.
var over = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// ahead is a body whose first bytes were read already.
type ahead struct {
	io.ReadCloser
	first []byte
	err   error // after them, nil if more is to be read
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

// fill reads in to its end. The announced length of the body, in bytes, is -1 if it is not known.
// Memory is taken as bytes come, because an announcement costs the client nothing.
func (rd Reader) fill(ctx context.Context, in io.Reader, announced int64, setDeadline func(time.Time) error) (b Body, err error) {
	longest := announced
	if announced < 0 {
		longest = rd.Limit
	}
	var refused *plugins.Error
	if b.reservation, refused = rd.Memory.Hold(ctx, min(firstRead, copies*longest)); refused != nil {
		return b, refused
	}
	first := firstReads.Get().(*[firstRead]byte)
	defer firstReads.Put(first)
	b.Bytes = first[:0]
	begun, bounded, bounds := time.Now(), int64(-leastRate), true
	for err == nil {
		if len(b.Bytes) == cap(b.Bytes) {
			if err = rd.enlarge(ctx, &b, longest, announced >= 0); err != nil {
				break
			}
		}
		if capacity := int64(cap(b.Bytes)); bounds && capacity >= bounded+leastRate { // a second more
			bounded = capacity
			bounds = setDeadline(begun.Add(patience+time.Duration(capacity)*time.Second/leastRate)) == nil // not every server can
		}
		var n int
		n, err = in.Read(b.Bytes[len(b.Bytes):cap(b.Bytes)])
		b.Bytes = b.Bytes[:len(b.Bytes)+n]
		if int64(len(b.Bytes)) > rd.Limit {
			err = rd.tooLong()
		}
	}
	if bounds && !errors.Is(err, os.ErrDeadlineExceeded) { // else the server would wait for the rest
		_ = setDeadline(time.Time{})
	}
	if &b.Bytes[:1][0] == &first[0] {
		b.Bytes = bytes.Clone(b.Bytes)
	}
	if err != io.EOF { //nolint:errorlint // a body that was cut off wraps it
		return b, err
	}
	return b, b.hold(ctx, copies*int64(len(b.Bytes)))
}

// enlarge makes room for more of a body, of at most longest bytes. One that is not small takes
// what it can be at most: so it never waits for more while others wait for what it holds.
func (rd Reader) enlarge(ctx context.Context, b *Body, longest int64, announced bool) error {
	size := 2 * int64(cap(b.Bytes))
	if announced {
		size *= growth / 2
	}
	size = min(max(size, trust), longest+1)
	hold := copies * size
	if hold > admission.Small {
		hold = copies * longest
	}
	if err := b.hold(ctx, hold); err != nil {
		return err
	}
	b.Bytes = append(make([]byte, 0, size), b.Bytes...)
	return nil
}

func (rd Reader) tooLong() *plugins.Error {
	return plugins.Rejected(http.StatusRequestEntityTooLarge, "request_too_large", "The body is over %d bytes long.", rd.Limit)
}

// lateError is what a client is told whose body did not come in time. The connection has the rest of
// the body, which must not be taken for another request.
func lateError(w http.ResponseWriter, r *http.Request) *plugins.Error {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	admission.Refusals.With(metric.Constant("slow_body")).Inc()
	return plugins.Rejected(http.StatusRequestTimeout, "request_timeout",
		"The body did not come in time: it has %.0f seconds, and one more for each %d KiB.", patience.Seconds(), leastRate>>10)
}

// readError is what a client is told of a body that cannot be read.
func (rd Reader) readError(w http.ResponseWriter, r *http.Request, err error) error {
	if _, isAnswer := errors.AsType[*plugins.Error](err); err == nil || isAnswer {
		return err
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return lateError(w, r)
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

// givenBody is the body of a request that was received in another way.
type givenBody struct{ Body }

// Give makes the body that of a request, where Read finds it. The memory goes with it.
// release gives it back if nobody has read the body.
func (b *Body) Give(r *http.Request) (release func(), err error) {
	if err := b.Grow(r.Context(), 0); err != nil {
		return nil, err
	}
	g := &givenBody{*b}
	r.Body, r.ContentLength = g, int64(len(b.Bytes))
	b.reservation = admission.Reservation{}
	return g.Release, nil
}

func (g *givenBody) take() (b Body) {
	b, g.Body = g.Body, Body{}
	return b
}

// Read implements io.Reader for those who do not know the door: nothing is there.
func (*givenBody) Read([]byte) (int, error) { return 0, io.EOF }

// Close releases a body that nobody has read.
func (g *givenBody) Close() error {
	g.Release()
	return nil
}
