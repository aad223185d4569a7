package shared

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxFailures within failureWindow open a circuit for Cooldown after the last.
	MaxFailures   = 3
	failureWindow = 30 * time.Second
	Cooldown      = 30 * time.Second
	// MaxCircuits bounds how many circuits are watched. Clients choose the names of
	// models, so that the number of failing models has no bound.
	MaxCircuits = 4096
)

// LocalBreakers are the Breakers of one process. The zero value has all circuits
// closed.
type LocalBreakers struct {
	mu      sync.Mutex        // guards failing and open
	failing map[Key]*failures // by circuit
	open    map[Key]time.Time // until when, by circuit
	hasOpen atomic.Bool       // open is not empty: while all circuits are closed, Open needs no lock
}

// failures are the times of the last failures of a circuit, the oldest first.
type failures [MaxFailures]time.Time

// Failed implements Breakers.
func (b *LocalBreakers) Failed(circuit Key) { b.Fail(circuit) }

// Fail counts a failure, and reports whether it has opened the circuit.
func (b *LocalBreakers) Fail(circuit Key) (opened bool) {
	now := time.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failing == nil {
		b.failing = make(map[Key]*failures)
	}
	if b.open == nil {
		b.open = make(map[Key]time.Time)
	}
	f := b.failing[circuit]
	if f == nil {
		if b.makeRoom(now); len(b.failing) >= MaxCircuits {
			return false
		}
		f = new(failures)
		b.failing[circuit] = f
	}
	copy(f[:], f[1:])
	f[MaxFailures-1] = now
	if opened = !f[0].IsZero() && now.Sub(f[0]) <= failureWindow; opened {
		b.open[circuit] = now.Add(Cooldown)
		b.hasOpen.Store(true)
	}
	return opened
}

// Succeeded implements Breakers.
func (b *LocalBreakers) Succeeded(circuit Key) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failing, circuit)
	delete(b.open, circuit)
	b.hasOpen.Store(len(b.open) > 0)
}

// Open implements Breakers.
func (b *LocalBreakers) Open(circuit Key) bool {
	if !b.hasOpen.Load() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	until, open := b.open[circuit]
	return open && time.Now().Before(until)
}

// Replace makes the circuits in open the open circuits, each until its time. It keeps the map.
func (b *LocalBreakers) Replace(open map[Key]time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open = open
	b.hasOpen.Store(len(open) > 0)
}

// makeRoom forgets failures too old to count if too many circuits are watched.
func (b *LocalBreakers) makeRoom(now time.Time) {
	if len(b.failing) < MaxCircuits {
		return
	}
	for c, f := range b.failing {
		if now.Sub(f[MaxFailures-1]) > failureWindow {
			delete(b.failing, c)
			delete(b.open, c)
		}
	}
}

// Interface guards
var _ Breakers = (*LocalBreakers)(nil)
