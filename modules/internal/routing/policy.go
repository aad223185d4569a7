package routing

import (
	"context"
	"math"
	"math/rand/v2"
	"time"
)

// Outcome says what may follow an attempt.
type Outcome uint8

const (
	// Answered: the client has the answer.
	Answered Outcome = iota
	// Again: the same target may answer a request without what it has refused, at once.
	Again
	// Retry: the same target may answer after a pause, or another target.
	Retry
	// Failover: only another target may answer.
	Failover
	// Abort: the failure is the answer, or no client waits for one.
	Abort
)

// Policy bounds the attempts at one call.
type Policy struct {
	// Retries is how often an attempt is repeated at the same target.
	Retries int
	// Backoff is the pause before the first retry. Each further pause is twice as long.
	Backoff time.Duration
	// TryDuration is the time in which attempts may begin.
	TryDuration time.Duration
	// FirstByteTimeout bounds the time until a provider begins to answer. 0 is
	// 30 seconds for a stream, and no bound for an answer in one piece:
	// it begins when the model has finished.
	FirstByteTimeout time.Duration
}

const (
	maxRetryAfter     = 30 * time.Second
	firstEventTimeout = 30 * time.Second
	unbounded         = time.Duration(math.MaxInt64)
)

// FirstByte returns how long a provider may take until it begins to answer. The
// last target has no default bound, because no other one could answer in its place.
func (p Policy) FirstByte(stream, last bool) time.Duration {
	switch {
	case p.FirstByteTimeout > 0:
		return p.FirstByteTimeout
	case stream && !last:
		return firstEventTimeout
	}
	return unbounded
}

// Pause returns how long to wait before another attempt at a target. attempts is the number of attempts
// so far. retryAfter is the pause that the provider asks for, 0 if it does not ask. ok is false if no
// attempt should follow, because there were enough or the next would begin after the deadline.
func (p Policy) Pause(attempts int, retryAfter time.Duration, deadline time.Time) (pause time.Duration, ok bool) {
	if attempts > p.Retries || retryAfter > maxRetryAfter {
		return 0, false
	}
	pause = max(p.pause(attempts), retryAfter)
	return pause, !time.Now().Add(pause).After(deadline)
}

// pause returns the pause after a number of attempts. It is shortened at random by up to a half, so that
// callers who failed together do not come back together.
func (p Policy) pause(attempts int) time.Duration {
	d := p.Backoff << min(attempts-1, 10)
	return d - rand.N(max(d/2, 1))
}

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
