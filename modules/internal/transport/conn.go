package transport

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"sync"
	"syscall"
	"time"
)

const (
	// smallBody is up to which length of its body a request is written before the answer is
	// read. A provider that answers early and does not read on would stop a larger one.
	smallBody = 32 << 10
	// writeBuffer takes a small request whole.
	writeBuffer = smallBody + 4<<10
	// readBuffer and maxHeader are the defaults of http.Transport.
	readBuffer = 4 << 10
	maxHeader  = 10 << 20
)

// lateAnswer is how long an answer is waited for after the provider has stopped to take the
// request: it may have said why before.
const lateAnswer = time.Second

var (
	errHeaderSize = errors.New("the header of the provider's answer is too large: see max_response_header_size")
	errStatus     = errors.New("the provider's status is below 100, which is no status of HTTP")
	errSwitched   = errors.New("the provider has switched to another protocol, which nobody asked for")
	errAnswered   = errors.New("the provider has answered before it took the whole request")
)

// conn is a connection to a provider. It has one call at a time.
type conn struct {
	net.Conn
	t      *Transport
	to     address
	socket syscall.RawConn // below TLS, nil if there is none
	reader *bufio.Reader   // of conn.Read
	left   int64           // how many bytes may still be read
	since  time.Time       // when the last call ended
}

func newConn(t *Transport, to address, inner net.Conn) *conn {
	c := &conn{Conn: inner, t: t, to: to}
	if s, ok := inner.(syscall.Conn); ok {
		c.socket, _ = s.SyscallConn() // nil after an error
	}
	size := t.ReadBufferSize
	if size == 0 {
		size = readBuffer
	}
	c.reader = bufio.NewReaderSize(limited{c}, size)
	return c
}

// limited is a connection of which a header can be read no further than its limit.
type limited struct{ c *conn }

func (l limited) Read(p []byte) (int, error) {
	if l.c.left <= 0 {
		return 0, errHeaderSize
	}
	n, err := l.c.Conn.Read(p[:min(int64(len(p)), l.c.left)])
	l.c.left -= int64(n)
	return n, err
}

// call is the use of a connection by one request. It is the body of the answer.
type call struct {
	request http.Request // what is sent, with source as its body
	c       *conn
	ctx     context.Context
	body    io.Reader   // what the connection still has of the answer
	keeps   bool        // the provider takes another request after the answer
	release func() bool // ends the watch of ctx
	sender  sync.WaitGroup

	mu       sync.Mutex
	sending  bool  // another goroutine sends the request
	broken   error // why the body of the request broke off, nil if it did not
	sent     error // why the request could not be sent, nil if it could
	bounded  bool  // the header of the answer must come by a deadline
	begun    bool  // the header of the answer has come
	answered bool  // the answer is over
	whole    bool  // the answer was read to its end, and leaves the connection as it was
}

// roundTrip sends a request and returns the answer, whose body has the connection until the
// body ends or is closed.
func (c *conn) roundTrip(req *http.Request) (*http.Response, error) {
	x := &call{c: c, ctx: req.Context(), request: *req}
	if hasBody(req) {
		x.request.Body = source{req.Body, x}
	}
	x.release = context.AfterFunc(x.ctx, x.abort)
	if length := req.ContentLength; 0 < length && length <= smallBody || !hasBody(req) {
		x.send()
	} else {
		x.sending = true
		x.sender.Go(x.send)
	}
	resp, err := c.readHeader(req)
	if err != nil {
		x.finish(false)
		x.sender.Wait() // the caller may use the request again
		return nil, x.failure(err)
	}
	x.begin()
	x.body, x.keeps = resp.Body, !resp.Close
	if resp.Body == http.NoBody {
		x.finish(true)
		return resp, nil
	}
	resp.Body = x
	return resp, nil
}

// send writes a request whole, or notes why that failed. A provider that has stopped to take
// the request may have said why: its answer is waited for a moment longer.
func (x *call) send() {
	err := x.c.write(&x.request, !x.sending)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sending = false
	wait := x.c.t.Transport.ResponseHeaderTimeout
	switch {
	case x.broken != nil:
		x.sent = x.broken
		_ = x.c.Conn.Close() // no answer can come
	case err != nil:
		x.sent, wait = err, lateAnswer
	}
	if x.bounded = wait > 0 && !x.begun; x.bounded {
		_ = x.c.SetReadDeadline(time.Now().Add(wait))
	}
	if x.answered {
		x.leave()
	}
}

// begin lets the body of the answer come without a deadline.
func (x *call) begin() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.begun = true; x.bounded {
		_ = x.c.SetReadDeadline(time.Time{})
	}
}

// source is the body of a request. It notes why it broke off, which net/http hides. It is not
// read once the answer is over: then its memory may have the body of another request.
type source struct {
	io.ReadCloser
	x *call
}

func (s source) Read(p []byte) (int, error) {
	s.x.mu.Lock()
	over := s.x.answered
	s.x.mu.Unlock()
	if over {
		return 0, errAnswered
	}
	n, err := s.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.x.mu.Lock()
		s.x.broken = err
		s.x.mu.Unlock()
	}
	return n, err
}

var writers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, writeBuffer) }}

// writerOnly hides how else a connection can be written, for which io.Copy would take a
// buffer of its own.
type writerOnly struct{ io.Writer }

// write writes a request, and closes its body. The header of a request that is not small
// goes ahead, because its body may take time.
func (c *conn) write(req *http.Request, small bool) error {
	w := writers.Get().(*bufio.Writer)
	w.Reset(writerOnly{c.Conn})
	var to io.Writer = w
	if small {
		to = struct{ *bufio.Writer }{w} // net/http flushes a *bufio.Writer after the header
	}
	err := req.Write(to)
	if err == nil {
		err = w.Flush()
	}
	w.Reset(nil)
	writers.Put(w)
	return err
}

// readHeader reads the header of the answer, and tells of those before it (RFC 9110, section
// 15.2).
func (c *conn) readHeader(req *http.Request) (*http.Response, error) {
	if c.left = c.t.Transport.MaxResponseHeaderBytes; c.left == 0 {
		c.left = maxHeader
	}
	for {
		resp, err := http.ReadResponse(c.reader, req)
		if err != nil {
			return nil, err
		}
		switch {
		case resp.StatusCode < 100: // Go's servers panic when they write it
			return nil, errStatus
		case resp.StatusCode/100 != 1:
			c.left = math.MaxInt64
			return resp, nil
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitched
		}
		if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.Got1xxResponse != nil {
			if err := trace.Got1xxResponse(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return nil, err
			}
		}
	}
}

// Read implements io.Reader.
func (x *call) Read(p []byte) (int, error) {
	n, err := x.body.Read(p)
	switch {
	case errors.Is(err, io.EOF):
		x.finish(true)
	case err != nil:
		x.finish(false)
		err = x.failure(err)
	}
	return n, err
}

// Close implements io.Closer.
func (x *call) Close() error {
	x.finish(false)
	return nil
}

func (x *call) finish(whole bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.answered {
		return
	}
	x.answered = true
	x.whole = x.release() && whole && x.keeps && x.c.reader.Buffered() == 0
	if x.whole && x.sending { // nobody may read the rest of the request
		_ = x.c.SetWriteDeadline(time.Now().Add(lateAnswer))
		return
	}
	x.leave()
}

// leave lets the connection wait for its next call, or closes it.
func (x *call) leave() {
	if !x.whole || x.sent != nil {
		_ = x.c.Conn.Close()
		return
	}
	_ = x.c.SetWriteDeadline(time.Time{})
	x.c.t.idle.put(x.c)
}

// abort ends a call whose context has ended.
func (x *call) abort() { _ = x.c.Conn.Close() }

// failure returns why a call has failed: that of the context, if it has ended, and that of
// the request if it could not be sent.
func (x *call) failure(err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return cmp.Or(context.Cause(x.ctx), x.sent, err)
}
