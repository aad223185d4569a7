package routing

import (
	"crypto/sha256"
	"slices"
	"sync"
	"time"
)

const (
	// maxFailures within failureWindow open a target's circuit for cooldown.
	maxFailures   = 3
	failureWindow = 30 * time.Second
	cooldown      = 30 * time.Second
	// maxFailing bounds how many targets are watched. Clients choose the names
	// of models, so that there is no bound on those that fail.
	maxFailing = 4096
)

// breaker is a circuit breaker for each target: one that fails comes after the
// others during its cooldown.
type breaker struct {
	mu      sync.Mutex
	failing map[circuit]*failures
}

// circuit identifies a target in any configuration.
type circuit struct {
	account [sha256.Size]byte
	model   string
}

// failures are the times of the last ones, the oldest first.
type failures [maxFailures]time.Time

// targets is the breaker of the process: it outlives a reload.
var targets = breaker{failing: make(map[circuit]*failures)}

func circuitOf(t Target) circuit { return circuit{t.Account.ID, t.Model} }

// Failed counts a failure of the target.
func Failed(t Target) {
	now := time.Now()
	targets.mu.Lock()
	defer targets.mu.Unlock()
	f := targets.failing[circuitOf(t)]
	if f == nil {
		if targets.makeRoom(now); len(targets.failing) >= maxFailing {
			return
		}
		f = new(failures)
		targets.failing[circuitOf(t)] = f
	}
	copy(f[:], f[1:])
	f[maxFailures-1] = now
}

// Succeeded closes the target's circuit.
func Succeeded(t Target) {
	targets.mu.Lock()
	defer targets.mu.Unlock()
	delete(targets.failing, circuitOf(t))
}

// Order returns the targets with those in cooldown behind the others.
func Order(list []Target) []Target {
	now := time.Now()
	targets.mu.Lock()
	defer targets.mu.Unlock()
	rank := func(t Target) int {
		if f := targets.failing[circuitOf(t)]; f != nil && f.open(now) {
			return 1
		}
		return 0
	}
	ordered := slices.Clone(list)
	slices.SortStableFunc(ordered, func(a, b Target) int { return rank(a) - rank(b) })
	return ordered
}

// makeRoom forgets failures too old to count if too many targets are watched.
func (b *breaker) makeRoom(now time.Time) {
	if len(b.failing) < maxFailing {
		return
	}
	for c, f := range b.failing {
		if now.Sub(f[maxFailures-1]) > failureWindow {
			delete(b.failing, c)
		}
	}
}

func (f *failures) open(now time.Time) bool {
	first, last := f[0], f[maxFailures-1]
	return !first.IsZero() && last.Sub(first) <= failureWindow && now.Sub(last) < cooldown
}
