package capture

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
)

// Hijack is what http.ResponseController calls for an upgrade. The connection
// that it returns counts the bytes of both directions, and hands them to the readers
// that follow them.
func (w *Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	inner, brw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	w.tunnel = true
	counted := &conn{Conn: inner, w: w}

	brw.Writer.Reset(counted)
	if n := brw.Reader.Buffered(); n > 0 {
		early, _ := brw.Peek(n)
		counted.receive(early)
		brw.Reader.Reset(io.MultiReader(bytes.NewReader(bytes.Clone(early)), counted))
		_, _ = brw.Peek(n) // callers look at Buffered
	} else {
		brw.Reader.Reset(counted)
	}

	if half, ok := inner.(closeWriter); ok {
		return &halfCloser{counted, half}, brw, nil
	}
	return counted, brw, nil
}

// conn watches what passes through a connection that left HTTP.
type conn struct {
	net.Conn
	w *Writer
}

func (c *conn) receive(p []byte) {
	c.w.received.Add(int64(len(p)))
	if c.w.fromClient != nil && len(p) > 0 {
		c.w.fromClient.Write(p)
	}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.receive(p[:n])
	if err != nil {
		c.w.endedBy.CompareAndSwap(nobody, theClient)
	}
	return n, err
}

func (c *conn) Write(p []byte) (int, error) {
	if c.w.fromServer != nil {
		c.w.fromServer.Write(p)
	}
	n, err := c.Conn.Write(p)
	c.w.sent.Add(int64(n))
	return n, err
}

// Close is the server's end of the tunnel, unless the client has ended it.
func (c *conn) Close() error {
	c.w.endedBy.CompareAndSwap(nobody, theServer)
	return c.Conn.Close()
}

// ReadFrom and WriteTo let the kernel move the bytes where nobody follows them.
func (c *conn) ReadFrom(r io.Reader) (int64, error) {
	if c.w.fromServer != nil {
		return io.Copy(writerOnly{c}, r)
	}
	n, err := io.Copy(c.Conn, r)
	c.w.sent.Add(n)
	return n, err
}

func (c *conn) WriteTo(w io.Writer) (int64, error) {
	if c.w.fromClient != nil {
		return io.Copy(w, readerOnly{c})
	}
	n, err := io.Copy(w, c.Conn)
	c.w.received.Add(n)
	return n, err
}

type (
	readerOnly struct{ io.Reader }
	writerOnly struct{ io.Writer }
)

type closeWriter interface{ CloseWrite() error }

// halfCloser is a conn over one whose directions close apart. A tunnel asks for
// the method, so a conn over any other must not have it.
type halfCloser struct {
	*conn
	inner closeWriter
}

func (h *halfCloser) CloseWrite() error {
	h.w.endedBy.CompareAndSwap(nobody, theServer)
	return h.inner.CloseWrite()
}

// Interface guards
var (
	_ io.ReaderFrom = (*conn)(nil)
	_ io.WriterTo   = (*conn)(nil)
	_ closeWriter   = (*halfCloser)(nil)
)
