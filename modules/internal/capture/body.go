package capture

import (
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

	mu       sync.Mutex
	tap      Tap
	received int64
	detached atomic.Bool // nothing is read any more
}

// Read implements io.Reader.
func (b *Body) Read(p []byte) (int, error) {
	if b.detached.Load() {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
	if n == 0 && err == nil {
		return n, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.detached.Load() {
		return n, err
	}
	b.received += int64(n)
	b.tap.Write(p[:n])
	if err == io.EOF {
		b.tap.Close()
	}
	return n, err
}

// Close implements io.Closer. The body beneath stays open for the server, which reads and closes
// it when the answer is written. Of a body that somebody else has closed, net/http cannot tell that
// it has not ended, because Caddy puts a reader of its own around it (read_idle_timeout): it would
// take the rest for the next request.
func (b *Body) Close() error {
	b.detached.Store(true)
	return nil
}

// Look calls f with the tap and the number of bytes read from the client so
// far, while no reader is at work.
func (b *Body) Look(f func(t *Tap, received int64)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(&b.tap, b.received)
}

// Detach ends the watch and frees the copy.
func (b *Body) Detach() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tap.Close()
	b.tap.Free()
	b.detached.Store(true)
}
