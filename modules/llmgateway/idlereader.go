package llmgateway

import (
	"io"
	"sync"
	"time"
)

const (
	// maxHold bounds how long the first events of a stream wait for the first content. It counts from
	// the provider's header.
	maxHold = 2 * time.Second
	// pingInterval is the silence after which the client gets a comment, which keeps the connection
	// alive.
	pingInterval = 15 * time.Second
)

// idleReader is a provider's body. It calls beforeRead before it waits for the provider, and
// onIdle when it has waited for long. The reader holds the lock except while it waits, so
// that the reader and onIdle never run at the same time.
type idleReader struct {
	io.ReadCloser
	beforeRead func()     // may be nil
	mu         sync.Mutex // guards the fields below
	timer      *time.Timer
	closed     bool
}

// newIdleReader begins to watch: onIdle is called after maxHold, and then whenever
// the time that it returned has passed. stop must follow.
func newIdleReader(body io.ReadCloser, beforeRead func(), onIdle func() time.Duration) *idleReader {
	r := &idleReader{ReadCloser: body, beforeRead: beforeRead}
	r.mu.Lock()
	r.timer = time.AfterFunc(maxHold, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !r.closed {
			r.timer.Reset(onIdle())
		}
	})
	return r
}

// Read implements io.Reader.
func (r *idleReader) Read(b []byte) (int, error) {
	if r.beforeRead != nil {
		r.beforeRead()
	}
	r.mu.Unlock()
	defer r.mu.Lock()
	return r.ReadCloser.Read(b)
}

func (r *idleReader) stop() {
	r.closed = true
	r.timer.Stop()
	r.mu.Unlock()
}
