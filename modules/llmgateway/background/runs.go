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
	// keepEnded is for how long the events of a response can be had after its end, and
	// maxKept bounds those of all that ended, and those that are published, in bytes.
	keepEnded = shared.KeepRuns
	maxKept   = 128 << 20
)

// Runs are those of a process. The zero Runs has none.
type Runs struct {
	mu      sync.Mutex
	byID    map[key]*Run
	running int
	ended   []*Run // the first to end first
	kept    int    // bytes

	published int // bytes of events that other nodes have
}

// key names a response: two organisations may have chosen the same id.
type key struct{ org, id string }

// Begin adds a response, of which response is what there is to begin with. It returns
// nil if there are too many.
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

// Find returns the response of an id that its organisation asks for, or its user, nil if
// there is none. A user of "" speaks for the organisation.
func (s *Runs) Find(org, user, id string) *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.byID[key{org, id}]
	if r == nil || user != "" && r.User != user {
		return nil
	}
	return r
}

// End ends a response: the record has it.
func (s *Runs) End(r *Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer close(r.more)
	defer close(r.ended) // who waits for it may forget it
	s.running--
	s.ended = append(s.ended, r)
	s.kept += r.size
	for s.kept > maxKept {
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

// drop needs the mutex.
func (s *Runs) drop(r *Run) {
	if i := slices.Index(s.ended, r); i >= 0 {
		s.ended = slices.Delete(s.ended, i, i+1)
		s.kept -= r.size
		s.published -= r.published
		r.published = 0
		delete(s.byID, key{r.Org, r.ID})
	}
}

// mayPublish reports whether so many bytes more of the events of a response may be
// published. If not, none of them are.
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

// count counts bytes of events that were published.
func (s *Runs) count(r *Run, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.published += bytes
	r.published += bytes
}
