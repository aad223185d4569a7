// Package admission bounds the resources that all calls together use, so that no caller
// takes what others need: calls beyond a bound wait for a while, and are then refused.
package admission

import (
	"cmp"
	"context"
	"runtime/debug"
	"time"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
)

const (
	// Small is up to how many bytes a request is small.
	Small = 16 << 20
	// maxWait is the MaxWait of a new Memory.
	maxWait = 10 * time.Second
	// retryAfter is when a refused one should come back.
	retryAfter = 5 * time.Second
)

// Refusals counts what was refused, by the limit that it met. It lives as long as
// the process, so that it survives reloads.
var Refusals = metric.NewCounters("weir_refusals_total", "Calls refused because they met a limit, by the limit.", "limit")

// Share returns the memory that one use may take, in bytes: a quarter of Go's memory limit, which
// Caddy sets from the cgroup, and at most limit.
func Share(limit int64) int64 { return min(debug.SetMemoryLimit(-1)/4, limit) }

// maxMemory bounds the memory of requests unless the configuration does, in bytes.
const maxMemory = 1 << 30

// Memory bounds the bytes that requests take at the same time, and no owner can take what others
// need. Half of it is for small requests, which large ones never keep waiting.
type Memory struct {
	*bounds
	owner string
}

// bounds are what the owners of a Memory share.
type bounds struct {
	// MaxWait is how long a request waits for memory before it is refused.
	MaxWait time.Duration

	small, large *pool
	half         int64 // bytes of each
}

// NewMemory returns a Memory of this size, 0 for its share of the process's memory. A
// request that is larger than it could ever hold is admitted alone.
func NewMemory(bytes int64) *Memory {
	half := max(cmp.Or(bytes, Share(maxMemory))/2, 1)
	return &Memory{bounds: &bounds{maxWait, newPool(half), newPool(half), half}}
}

// Of returns the memory of an owner: of an organisation, or of all callers without a key if
// owner is "".
func (m *Memory) Of(owner string) *Memory { return &Memory{m.bounds, owner} }

// Largest returns how much one request can hold, in bytes.
func (m *Memory) Largest() int64 { return m.half }

// Reservation is memory that a request holds. The zero Reservation holds none.
type Reservation struct {
	memory *Memory
	pool   *pool
	weight int64
}

// Hold waits for the memory of a request. The error is a 503 with the time after which to try again.
func (m *Memory) Hold(ctx context.Context, bytes int64) (Reservation, *plugins.Error) {
	h := Reservation{memory: m, pool: m.small}
	return h, h.Resize(ctx, bytes)
}

// Largest returns how much one request can hold, in bytes.
func (h *Reservation) Largest() int64 { return h.memory.half }

// Release gives the memory back.
func (h *Reservation) Release() {
	if h.weight > 0 {
		h.pool.release(h.memory.owner, h.weight)
	}
	*h = Reservation{}
}

// Resize changes the reservation to bytes: it gives memory back, or waits for more as Hold does. An
// error leaves h as it was.
func (h *Reservation) Resize(ctx context.Context, bytes int64) *plugins.Error {
	weight := min(bytes, h.memory.half)
	switch large := h.memory.large; {
	case weight == h.weight:
	case weight < h.weight:
		h.pool.release(h.memory.owner, h.weight-weight)
	case bytes <= Small || h.pool == large:
		if !h.memory.acquire(ctx, h.pool, weight-h.weight, h.weight) {
			return overloaded()
		}
	default: // the small one waits among the large ones, which wait for no small one
		if !h.memory.acquire(ctx, large, weight, 0) {
			return overloaded()
		}
		h.pool.release(h.memory.owner, h.weight)
		h.pool = large
	}
	h.weight = weight
	return nil
}

// acquire waits for bytes of a pool, beyond those that a request has of it.
func (m *Memory) acquire(ctx context.Context, p *pool, bytes, has int64) bool {
	return p.acquire(ctx, m.owner, bytes, has, m.MaxWait)
}

func overloaded() *plugins.Error {
	Refusals.With(metric.Constant("request_memory")).Inc()
	return plugins.Unavailable(plugins.Overloaded, retryAfter, "The requests of other calls take all memory that there is for them. Try again later.")
}
