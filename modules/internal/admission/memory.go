package admission

import (
	"context"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/weirhq/weir/plugins"
)

const (
	// Small is up to how many bytes a request is small.
	Small = 1 << 20
	// copies is how many times a large request stands in memory at its worst: the
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

// Hold waits for room for a request of so many bytes, until release is called. The
// error is a 503 that says when to come back.
func (m *Memory) Hold(ctx context.Context, bytes int64) (release func(), err *plugins.Error) {
	pool, weight := m.small, bytes
	if bytes > Small {
		pool, weight = m.large, copies*bytes
	}
	weight = min(weight, m.half)
	if pool.TryAcquire(weight) {
		return func() { pool.Release(weight) }, nil
	}
	ctx, cancel := context.WithTimeout(ctx, maxWait)
	defer cancel()
	if pool.Acquire(ctx, weight) == nil {
		return func() { pool.Release(weight) }, nil
	}
	Refusals.WithLabelValues("request_memory").Inc()
	return nil, &plugins.Error{
		Status: http.StatusServiceUnavailable, Type: "server_error", Code: "overloaded", RetryAfter: retryAfter,
		Message: "The requests of other calls take all memory that there is for them. Try again later.",
	}
}
