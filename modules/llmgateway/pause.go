package llmgateway

import (
	"io"
	"sync"
	"time"
)

const (
	// maxHold is for how long the events that open a stream are held back for
	// the first content, after the provider's header.
	maxHold = 2 * time.Second
	// pingInterval is after how long a silence the client gets a comment, which
	// keeps the connection alive.
	pingInterval = 15 * time.Second
)

// pausing is a body whose reader may be waiting while there is something to
// write: a function is then called. The reader has the lock but while it waits,
// so that the two never work at the same time.
type pausing struct {
	io.ReadCloser
	mu    sync.Mutex
	timer *time.Timer
	ended bool
}

// watchPauses begins to watch: onPause is called after maxHold, and then
// whenever the time that it returned has passed.
func watchPauses(body io.ReadCloser, onPause func() time.Duration) *pausing {
	p := &pausing{ReadCloser: body}
	p.mu.Lock()
	p.timer = time.AfterFunc(maxHold, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.ended {
			p.timer.Reset(onPause())
		}
	})
	return p
}

// keepAlive calls ping if the client has heard nothing for pingInterval, and
// returns when that may be so again.
func (a *attempt) keepAlive(ping func()) time.Duration {
	if silence := time.Since(a.wrote); silence < pingInterval {
		return pingInterval - silence
	}
	ping()
	return pingInterval
}

// Read implements io.Reader.
func (p *pausing) Read(b []byte) (int, error) {
	p.mu.Unlock()
	defer p.mu.Lock()
	return p.ReadCloser.Read(b)
}

// end ends the watch.
func (p *pausing) end() {
	p.ended = true
	p.timer.Stop()
	p.mu.Unlock()
}
