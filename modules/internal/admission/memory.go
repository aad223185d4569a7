package admission

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/weirhq/weir/modules/internal/metric"
	"github.com/weirhq/weir/plugins"
)

const (
	// Small is up to how many bytes a request is small. Requests with a few images
	// are.
	Small = 4 << 20
	// copies is how many copies of a large request memory holds at worst: the
	// body, what was read of it, and what is sent.
	copies = 3
	// maxWait is how long a request waits for memory before it is refused.
	maxWait = 10 * time.Second
	// retryAfter is when a refused one should come back.
	retryAfter = 5 * time.Second
)

// Memory bounds the bytes of requests that are held at the same time. Half of it
// is for small requests, which large ones never keep waiting.
type Memory struct {
	small, large *semaphore.Weighted
	half         int64
}

// NewMemory returns a Memory of so many bytes. A request that is larger than it
// could ever hold is admitted alone.
func NewMemory(bytes int64) *Memory {
	half := max(bytes/2, 1)
	return &Memory{semaphore.NewWeighted(half), semaphore.NewWeighted(half), half}
}

// Held is memory that a request holds. The zero Held holds none.
type Held struct {
	pool   *semaphore.Weighted
	copies int64 // of each byte
	weight int64
}

// Release gives the memory back.
func (h *Held) Release() { h.Reduce(0) }

// Reduce gives back what is beyond so many bytes.
func (h *Held) Reduce(bytes int64) {
	if weight := h.copies * bytes; weight < h.weight {
		h.pool.Release(h.weight - weight)
		h.weight = weight
	}
}

// Hold waits for room for a request of so many bytes. The error is a 503 that says
// when to come back.
func (m *Memory) Hold(ctx context.Context, bytes int64) (Held, *plugins.Error) {
	held := Held{pool: m.small, copies: 1}
	if bytes > Small {
		held = Held{pool: m.large, copies: copies}
	}
	held.weight = min(held.copies*bytes, m.half)
	if held.pool.TryAcquire(held.weight) {
		return held, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if held.pool.Acquire(ctx, held.weight) == nil {
		return held, nil
	}
	Refusals.With(metric.Constant("request_memory")).Inc()
	return Held{}, &plugins.Error{
		Status: http.StatusServiceUnavailable, Type: "server_error", Code: "overloaded", RetryAfter: retryAfter,
		Message: "The requests of other calls take all memory that there is for them. Try again later.",
	}
}
