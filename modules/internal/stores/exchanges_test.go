package stores

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestExchanges holds that the end of the process cuts off what is in flight,
// also what comes late, and waits for all of it, but not for ever.
func TestExchanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e exchanges
		e.wait(t.Context()) // for nobody

		var ended atomic.Int64
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			done := e.add(cancel)
			go func() {
				<-ctx.Done()
				time.Sleep(time.Second)
				ended.Add(1)
				done()
			}()
		}
		e.cutOff()
		_, late := context.WithCancel(t.Context())
		cut := false
		e.add(func() { late(); cut = true })()
		if !cut {
			t.Error("a late exchange was not cut off")
		}
		e.wait(t.Context())
		if ended.Load() != 3 {
			t.Errorf("waited for %d exchanges, want 3", ended.Load())
		}

		defer e.add(func() {})()
		bounded, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		e.wait(bounded)
		if bounded.Err() == nil {
			t.Error("did not wait for an exchange that stays")
		}
	})
}
