package stores

import (
	"context"
	"sync"
)

// exchanges are the exchanges in flight on one store. The zero value has none.
type exchanges struct {
	mu      sync.Mutex // guards all fields
	cancels map[int]context.CancelFunc
	nextID  int
	isCut   bool          // cutOff was called
	idle    chan struct{} // closed when the last has ended; nil while nothing waits
}

// add adds an exchange, which done removes.
func (e *exchanges) add(cancel context.CancelFunc) (done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cancels == nil {
		e.cancels = make(map[int]context.CancelFunc)
	}
	id := e.nextID
	e.nextID++
	e.cancels[id] = cancel
	if e.isCut {
		cancel()
	}
	return func() { e.remove(id) }
}

func (e *exchanges) remove(id int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.cancels, id)
	if len(e.cancels) == 0 && e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
}

// cutOff cancels all exchanges, also later ones.
func (e *exchanges) cutOff() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.isCut = true
	for _, cancel := range e.cancels {
		cancel()
	}
}

// wait returns when no exchange is left, or when ctx ends.
func (e *exchanges) wait(ctx context.Context) {
	e.mu.Lock()
	if len(e.cancels) == 0 {
		e.mu.Unlock()
		return
	}
	if e.idle == nil {
		e.idle = make(chan struct{})
	}
	idle := e.idle
	e.mu.Unlock()
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
