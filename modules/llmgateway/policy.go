package llmgateway

import (
	"context"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/weirhq/weir/plugins"
)

// failure is an attempt that did not answer.
type failure struct {
	target target
	err    *plugins.Error
	next   next
}

// next is what may follow a failure.
type next uint8

const (
	// giveUp: the failure is the answer, or nobody waits for one any more.
	giveUp next = iota
	// again: the same target may do better in a while.
	again
	// elsewhere: only another target may do better.
	elsewhere
)

// policy bounds the attempts at one call.
type policy struct {
	retries     int           // at the same target
	tryDuration time.Duration // in which attempts may begin
}

const (
	firstBackoff  = 250 * time.Millisecond
	maxRetryAfter = 30 * time.Second
)

// run makes attempts at the targets in their order, those that are in good
// health before the others, until one answers, which it tells by nil, or no
// other may follow. It returns the failures, and whether an attempt answered.
func (p policy) run(ctx context.Context, targets []target, attempt func(t target, n int) *failure) (failures []failure, answered bool) {
	deadline := time.Now().Add(p.tryDuration)
	for _, t := range healthyFirst(targets) {
		health := healthOf(t.account)
		for try := 0; ; try++ {
			f := attempt(t, len(failures)+1)
			if f == nil {
				health.succeeded()
				return failures, true
			}
			failures = append(failures, *f)
			if f.next == giveUp {
				return failures, false
			}
			if f.next == again || f.err.Status >= http.StatusInternalServerError {
				health.failed(time.Now())
			}
			if f.next == elsewhere || try >= p.retries {
				break
			}
			wait := max(backoff(try), f.err.RetryAfter)
			if f.err.RetryAfter > maxRetryAfter || time.Now().Add(wait).After(deadline) {
				break
			}
			if !sleep(ctx, wait) {
				return failures, false
			}
		}
		if time.Now().After(deadline) {
			break
		}
	}
	return failures, false
}

// backoff is how long to wait after so many retries: twice as long each time,
// less up to half of it by chance, so that callers do not come back together.
func backoff(retries int) time.Duration {
	d := firstBackoff << min(retries, 10)
	return d - rand.N(d/2)
}

// sleep is false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// healthyFirst moves targets that fail at present behind the others.
func healthyFirst(targets []target) []target {
	now := time.Now()
	ordered := slices.Clone(targets)
	slices.SortStableFunc(ordered, func(a, b target) int {
		return healthOf(a.account).order(now) - healthOf(b.account).order(now)
	})
	return ordered
}
