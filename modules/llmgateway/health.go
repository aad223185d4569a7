package llmgateway

import (
	"sync"
	"time"

	"github.com/weirhq/weir/modules/llmapp"
)

// health is what calls have shown of an account. One that failed thrice within
// the window rests as long.
type health struct {
	mu       sync.Mutex
	failures [maxFailures]time.Time // the last ones, the oldest first
}

const (
	maxFailures  = 3
	healthWindow = 30 * time.Second
)

// healths has the health of each account for the life of the process: a reload
// forgets nothing. Accounts come from configurations, so they are few.
var healths sync.Map // by Account.ID: *health

func healthOf(a *llmapp.Account) *health {
	if h, ok := healths.Load(a.ID); ok {
		return h.(*health)
	}
	h, _ := healths.LoadOrStore(a.ID, new(health))
	return h.(*health)
}

func (h *health) failed(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	copy(h.failures[:], h.failures[1:])
	h.failures[maxFailures-1] = at
}

func (h *health) succeeded() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures = [maxFailures]time.Time{}
}

// order is 0 for an account in good health, and 1 for one that rests.
func (h *health) order(now time.Time) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	first, last := h.failures[0], h.failures[maxFailures-1]
	if !first.IsZero() && last.Sub(first) <= healthWindow && now.Sub(last) < healthWindow {
		return 1
	}
	return 0
}
