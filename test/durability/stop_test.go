//go:build linux

package durability

import (
	"context"
	"sync"
	"testing"
	"time"
)

// TestStop asks the process to end while streams run, and while calls wait for a
// provider that says nothing. With a grace period that is long enough, they end as
// if nothing was; with a short one they are cut, the process ends soon after, and
// every record is there all the same.
func TestStop(t *testing.T) {
	for _, grace := range []struct {
		name, period string
		long         bool
	}{
		{"long grace period", "30s", true},
		{"short grace period", "100ms", false},
	} {
		t.Run(grace.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			w := newWeir(t, p)
			w.start(config{global: "grace_period " + grace.period})
			since := time.Now()
			hold := make(chan struct{})
			release := sync.OnceFunc(func() { close(hold) })
			t.Cleanup(release)
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			calls := make([]*call, rounds(20, 50))
			outcomes := make([]outcome, len(calls))
			var clients sync.WaitGroup
			for i := range calls {
				c := p.call(dialects[i%len(dialects)])
				c.stream, c.hold, c.silent = true, hold, i%2 == 1
				calls[i] = c
				clients.Go(func() { outcomes[i] = c.do(ctx, w) })
			}
			w.await("all streams run", func() bool { return p.holding(calls) })
			if err := w.reload(config{global: "grace_period " + grace.period, store: "retention 90d"}); err != nil {
				t.Fatal(err) // the streams belong to the configuration before
			}
			asked := time.Now()
			w.terminate()
			if grace.long {
				w.await("new connections are refused", func() bool { return !w.listens() })
				release()
			}
			clients.Wait()
			w.wait()
			if took := time.Since(asked); took > patience {
				t.Errorf("the process took %v to end", took)
			}
			release()

			w.start(config{})
			w.flush()
			records := w.records(since)
			w.wantBalance(len(calls), nil)
			for i, c := range calls {
				r := records[c.name()]
				switch {
				case grace.long && !outcomes[i].ended:
					t.Errorf("%s: was cut: %v", c.name(), outcomes[i].err)
				case grace.long:
					c.check(t, r, outcomes[i].id)
				case r == nil:
					t.Errorf("%s: the record is lost", c.name())
				case outcomes[i].ended || r.EndState == "complete" || r.RequestBody == nil || !has(r.RequestBody, c.prompt):
					t.Errorf("%s: was to be cut, and is %s, with the request %s", c.name(), r.EndState, r.RequestBody)
				}
			}
		})
	}
}
