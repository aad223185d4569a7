package background

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/storage/shared"
)

const (
	// maxRunning bounds the responses that are generated at a time.
	maxRunning = 1024
	// keepEnded is how long the events of a response are kept after its end. maxKept bounds the
	// events of all ended responses, and the published events of all responses, in bytes.
	keepEnded = shared.KeepRuns
	maxKept   = 128 << 20
)

// Runs are the responses in the background of a process. The zero Runs is empty.
type Runs struct {
	mu      sync.Mutex // guards all fields, and published of each Run
	byID    map[key]*Run
	running int
	ended   []*Run // in the order in which they ended
	size    int    // of the events of ended, in bytes

	published int // bytes of events that other nodes have
}

// key names a response: two organisations may have chosen the same id.
type key struct{ org, id string }

// Begin adds a response, with its first state. It returns nil if there are too many.
func (s *Runs) Begin(id, org, user string, response []byte, cancel context.CancelFunc) *Run {
	r := &Run{ID: id, Org: org, User: user, cancel: cancel, response: response, more: make(chan struct{}), ended: make(chan struct{})}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running >= maxRunning {
		return nil
	}
	if s.byID == nil {
		s.byID = make(map[key]*Run)
	}
	s.running++
	s.byID[key{org, id}] = r
	return r
}

// Find returns the response of an id if it belongs to the organisation and the user, else nil. A
// user of "" speaks for the organisation.
func (s *Runs) Find(org, user, id string) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byID[key{org, id}]
	if r == nil || user != "" && r.User != user {
		return nil
	}
	return r
}

// End ends a response that its record has.
func (s *Runs) End(r *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(r.more)
	defer close(r.ended) // who waits for the end may then call Forget
	s.running--
	s.ended = append(s.ended, r)
	s.size += r.size
	for s.size > maxKept {
		s.drop(s.ended[0])
	}
	time.AfterFunc(keepEnded, func() { s.Forget(r) })
}

// Forget forgets the events of a response that ended.
func (s *Runs) Forget(r *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(r)
}

// drop forgets the events of a response that ended. The caller holds the mutex.
func (s *Runs) drop(r *Run) {
	if i := slices.Index(s.ended, r); i >= 0 {
		s.ended = slices.Delete(s.ended, i, i+1)
		s.size -= r.size
		s.published -= r.published
		r.published = 0
		delete(s.byID, key{r.Org, r.ID})
		r.release() // a Stream that is still running keeps the events
	}
}

// mayPublish reports whether further bytes of events of a response may be published. If not, the
// events of the response no longer count.
func (s *Runs) mayPublish(r *Run, bytes int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.published+bytes <= maxKept {
		return true
	}
	s.published -= r.published
	r.published = 0
	return false
}

// count counts bytes of published events.
func (s *Runs) count(r *Run, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published += bytes
	r.published += bytes
}
