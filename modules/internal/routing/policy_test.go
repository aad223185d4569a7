package routing

import (
	"testing"
	"time"
)

func TestPause(t *testing.T) {
	policy := Policy{Retries: 2, Backoff: time.Second, TryDuration: time.Minute}
	for name, c := range map[string]struct {
		attempts   int
		retryAfter time.Duration
		left       time.Duration // until the deadline
		least      time.Duration
		ok         bool
	}{
		"the first retry":    {1, 0, time.Minute, time.Second / 2, true},
		"the second":         {2, 0, time.Minute, time.Second, true},
		"no more":            {3, 0, time.Minute, 0, false},
		"as asked":           {1, 20 * time.Second, time.Minute, 20 * time.Second, true},
		"asked for too long": {1, 31 * time.Second, time.Minute, 0, false},
		"over the deadline":  {1, 20 * time.Second, 10 * time.Second, 0, false},
	} {
		pause, ok := policy.Pause(c.attempts, c.retryAfter, time.Now().Add(c.left))
		if ok != c.ok || ok && (pause < c.least || pause > max(2*c.least, c.retryAfter)) {
			t.Errorf("%s: %s, %v", name, pause, ok)
		}
	}
}

func TestBackoffGrows(t *testing.T) {
	p := Policy{Backoff: 250 * time.Millisecond}
	for i, most := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second} {
		for range 100 {
			if d := p.pause(i + 1); d > most || d < most/2 {
				t.Fatalf("after %d attempts it waits %s, want %s to %s", i+1, d, most/2, most)
			}
		}
	}
}
