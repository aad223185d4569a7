package capture

import (
	"bytes"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// Body is a request body that is watched while somebody reads it. A transport
// may go on reading after the handler has returned: it is refused, as by the
// server, before it comes to the counters beneath, which the access log reads.
type Body struct {
	io.ReadCloser
	Length int64 // announced, in bytes; 0 or less if that is unknown

	reading  sync.Mutex   // held by who reads from the client; guards readers and complete
	complete bool         // the client has sent all of it
	readers  int32        // how many readers Again has returned
	ended    atomic.Int32 // how many readers have ended, the earliest first

	mu       sync.Mutex // guards tap, wire, wired and received
	tap      Tap
	wire     Copy // what came
	wired    bool // wire has what the tap does not keep
	received int64
	detached atomic.Bool // nothing is read any more
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) { return b.read(p, 0) }

// read reads for a reader: 0, or the one that Again returned as the first, the second and so on.
func (b *Body) read(p []byte, reader int32) (int, error) {
	b.reading.Lock()
	defer b.reading.Unlock()
	if reader < b.ended.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	// A transport looks for more than the announced length. By then the answer may have begun, with
	// which the server closes the body beneath: the transport would cut the answer for that error.
	if b.complete {
		return 0, io.EOF
	}
	if b.detached.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if n == 0 && err == nil {
		return n, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.received += int64(n); err == nil && b.received == b.Length {
		err = io.EOF
	}
	b.complete = err == io.EOF
	if b.detached.Load() {
		return n, err
	}
	b.tap.Write(p[:n])
	b.wire.Write(p[:n])
	if err == io.EOF {
		b.tap.Close()
	}
	return n, err
}

// Close implements io.Closer. The body beneath stays open for the server, which reads and closes
// it when the answer is written. Of a body that somebody else has closed, net/http cannot tell that
// it has not ended, because Caddy puts a reader of its own around it (read_idle_timeout): it would
// take the rest for the next request.
func (b *Body) Close() error { return b.close(0) }

func (b *Body) close(reader int32) error {
	b.ended.CompareAndSwap(reader, reader+1)
	return nil
}

// Look calls f with the tap and the number of bytes read from the client so
// far, while no reader is at work.
func (b *Body) Look(f func(t *Tap, received int64)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.tap, b.received)
}

// KeepWire keeps up to limit bytes of what the client sends for Again, if the tap does not.
func (b *Body) KeepWire(limit int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.wired = b.tap.max == 0 || b.tap.decoder != nil; b.wired {
		b.wire.Keep(limit, b.Length)
	}
}

// Again returns a reader of the whole body from its first byte, and ends all earlier readers. ok
// is false if not all that has come is kept.
func (b *Body) Again() (body io.ReadCloser, ok bool) {
	b.reading.Lock() // a reader may still wait for the client
	defer b.reading.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	first := b.tap.Bytes()
	if b.wired {
		first = b.wire.Bytes()
	}
	if b.detached.Load() || int64(len(first)) != b.received {
		return nil, false
	}
	b.readers++
	b.ended.Store(b.readers)
	return &again{bytes.NewReader(first), b, b.readers}, true
}

// again reads what has come of a body, and then the rest from the client.
type again struct {
	first  *bytes.Reader
	body   *Body
	reader int32
}

// Read implements io.Reader.
func (a *again) Read(p []byte) (int, error) {
	if a.first.Len() > 0 {
		return a.first.Read(p)
	}
	return a.body.read(p, a.reader)
}

// Close implements io.Closer.
func (a *again) Close() error { return a.body.close(a.reader) }

// FreeWire frees what only Again needs.
func (b *Body) FreeWire() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wire.Free()
}

// Detach ends the watch and frees the copies.
func (b *Body) Detach() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tap.Close()
	b.tap.Free()
	b.wire.Free()
	b.detached.Store(true)
}
