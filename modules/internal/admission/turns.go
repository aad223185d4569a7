package admission

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/metric"
)

// Limits bound what runs at the same time.
type Limits struct {
	// Running is how many run at the same time, RunningPerKey of one key.
	Running, RunningPerKey int
	// Waiting is how many wait, WaitingPerKey of one key, each for at most Wait.
	Waiting, WaitingPerKey int
	Wait                   time.Duration
}

// Turns lets a few run at a time, key by key in turn, so that a key with many
// keeps none waiting that has few.
type Turns struct {
	limits Limits
	limit  metric.Label // in Refusals

	mu               sync.Mutex // guards the fields below
	running, waiting int
	queues           map[string]*queue
	order            []*queue // those with waiting callers, the next first
}

// queue is what one key has.
type queue struct {
	running int
	waiting []chan struct{} // closed to let one run
}

// NewTurns returns Turns whose refusals are counted under a label.
func NewTurns(limit metric.Label, limits Limits) *Turns {
	return &Turns{limits: limits, limit: limit, queues: make(map[string]*queue)}
}

// Take waits for the turn of a key, which lasts until release is called. ok is
// false when too many wait, when it took too long, and when ctx ended.
func (t *Turns) Take(ctx context.Context, key string) (release func(), ok bool) {
	turn := t.queue(key)
	if turn != nil {
		waiting, cancel := context.WithTimeout(ctx, t.limits.Wait)
		defer cancel()
		select {
		case <-turn:
			return func() { t.release(key) }, true
		case <-waiting.Done():
			t.leave(key, turn)
		}
		if ctx.Err() != nil {
			return nil, false // nobody is there to be refused
		}
	}
	Refusals.With(t.limit).Inc()
	return nil, false
}

func (t *Turns) release(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.queues[key].running--
	t.next()
	t.forget(key)
}

// leave gives up waiting for a turn, which may just have come.
func (t *Turns) leave(key string, turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[key]
	if i := slices.Index(q.waiting, turn); i >= 0 {
		t.waiting--
		if q.waiting = slices.Delete(q.waiting, i, i+1); len(q.waiting) == 0 {
			t.order = slices.DeleteFunc(t.order, func(other *queue) bool { return other == q })
		}
	} else {
		t.running--
		q.running--
		t.next()
	}
	t.forget(key)
}

// forget drops a key that has nothing left.
func (t *Turns) forget(key string) {
	if q := t.queues[key]; q.running == 0 && len(q.waiting) == 0 {
		delete(t.queues, key)
	}
}

// queue returns a turn after those of the others with the same key. It returns nil if
// too many wait.
func (t *Turns) queue(key string) (turn chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[key]
	if q == nil {
		q = new(queue)
		t.queues[key] = q
	}
	runs := t.running < t.limits.Running && q.running < t.limits.RunningPerKey
	if !runs && (t.waiting == t.limits.Waiting || len(q.waiting) == t.limits.WaitingPerKey) {
		t.forget(key)
		return nil
	}
	turn = make(chan struct{})
	if q.waiting = append(q.waiting, turn); len(q.waiting) == 1 {
		t.order = append(t.order, q)
	}
	t.waiting++
	t.next()
	return turn
}

// next lets those run whose turn it is.
func (t *Turns) next() {
	for i := 0; i < len(t.order) && t.running < t.limits.Running; {
		q := t.order[i]
		if q.running == t.limits.RunningPerKey {
			i++
			continue
		}
		close(q.waiting[0])
		q.waiting = q.waiting[1:]
		q.running++
		t.running++
		t.waiting--
		t.order = slices.Delete(t.order, i, i+1)
		if len(q.waiting) > 0 {
			t.order = append(t.order, q)
		}
	}
}
