package admission

import (
	"context"
	"slices"
	"sync"
	"time"
)

// portion is how many times what stays free an owner may hold: alone it gets three quarters of a
// pool, and whoever comes next finds the last quarter, of which it gets as large a part. So nobody
// takes all, and no part lies idle for owners that may never come. Switches share the memory of
// their ports in this way (Choudhury and Hahne, https://doi.org/10.1109/90.664262).
const portion = 3

// pool is memory that several owners share.
type pool struct {
	mu     sync.Mutex // guards all below, and the shares
	free   int64      // bytes
	shares map[string]*share
	order  []*share // those with requests that wait, the next first
}

// share is what one owner has of a pool.
type share struct {
	owner    string
	reserved int64 // bytes
	waiting  []*waiter
}

// waiter is a request that has memory and waits for more, in bytes.
type waiter struct {
	bytes, has int64
	ready      chan struct{} // closed when the request has them
}

func newPool(bytes int64) *pool { return &pool{free: bytes, shares: make(map[string]*share)} }

// admits reports whether a request with has bytes gets further ones now. An owner's only request gets
// whatever is free.
func (p *pool) admits(s *share, bytes, has int64) bool {
	return bytes <= p.free && (s.reserved == has || s.reserved+bytes <= portion*(p.free-bytes))
}

func (p *pool) give(s *share, bytes int64) {
	p.free -= bytes
	s.reserved += bytes
}

// acquire waits up to maxWait until a request of the owner with has bytes gets further ones, and reports
// whether it did. The requests of one owner wait in their order. Those of another do not wait for them.
func (p *pool) acquire(ctx context.Context, owner string, bytes, has int64, maxWait time.Duration) bool {
	p.mu.Lock()
	s := p.shares[owner]
	if s == nil {
		s = &share{owner: owner}
		p.shares[owner] = s
	}
	if len(s.waiting) == 0 && p.admits(s, bytes, has) {
		p.give(s, bytes)
		p.mu.Unlock()
		return true
	}
	w := &waiter{bytes, has, make(chan struct{})}
	if s.waiting = append(s.waiting, w); len(s.waiting) == 1 {
		p.order = append(p.order, s)
	}
	p.mu.Unlock()
	late := time.NewTimer(maxWait)
	defer late.Stop()
	select {
	case <-w.ready:
		return true
	case <-late.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(s.waiting, w)
	if i < 0 { // it has just come
		return true
	}
	if s.waiting = slices.Delete(s.waiting, i, i+1); len(s.waiting) == 0 {
		p.order = slices.DeleteFunc(p.order, func(other *share) bool { return other == s })
	}
	p.next() // a smaller one may have waited behind it
	p.forget(s)
	return false
}

// release gives back bytes of an owner.
func (p *pool) release(owner string, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.shares[owner]
	if s == nil {
		return
	}
	p.give(s, -bytes)
	p.next()
	p.forget(s)
}

// next lets those go on for whom there is memory, one of each owner in turn.
func (p *pool) next() {
	for i := 0; i < len(p.order); {
		s := p.order[i]
		w := s.waiting[0]
		if !p.admits(s, w.bytes, w.has) {
			i++
			continue
		}
		p.give(s, w.bytes)
		close(w.ready)
		s.waiting = s.waiting[1:]
		if p.order = slices.Delete(p.order, i, i+1); len(s.waiting) > 0 {
			p.order = append(p.order, s)
		}
	}
}

// forget drops a share that is empty.
func (p *pool) forget(s *share) {
	if s.reserved == 0 && len(s.waiting) == 0 {
		delete(p.shares, s.owner)
	}
}
