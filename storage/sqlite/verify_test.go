package sqlite

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A verification works a quarter of the time, so that it leaves the processor and the disk to traffic, and
// ends with its context.
func TestVerificationRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		v := verification{rests: 3, began: began}
		for range 1000 { // pieces of work
			time.Sleep(time.Millisecond)
			if err := v.rest(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("a second of work took %v, want 4 s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		defer cancel()
		time.Sleep(minWork)
		if err := v.rest(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a rest with a context that ends: %v", err)
		}
	})
}
