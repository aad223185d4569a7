package admission

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/plugins"
)

// Large requests wait for each other, are refused after a while, and never keep
// small ones waiting.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(8 * Small)
		held, err := m.Hold(t.Context(), 7*Small)
		if err != nil {
			t.Fatalf("a request over the bound is not admitted alone: %v", err)
		}
		for range 4 {
			if _, err := m.Hold(t.Context(), Small); err != nil {
				t.Fatalf("a small request was refused: %v", err)
			}
		}
		begin := time.Now()
		if _, err := m.Hold(t.Context(), 2*Small); err == nil || err.Status != 503 || err.RetryAfter == 0 || time.Since(begin) != maxWait {
			t.Errorf("after %s a large request beside a larger one got %v", time.Since(begin), err)
		}
		time.AfterFunc(time.Second, held.Release)
		begin = time.Now()
		next, err := m.Hold(t.Context(), 2*Small)
		if err != nil || time.Since(begin) != time.Second {
			t.Errorf("after %s a request that waited got %v", time.Since(begin), err)
		}
		next.Release()
	})
}

// A request that turns out to be smaller gives back what it does not take, one that turns
// out to be larger waits for what it lacks, and one that grows large leaves the small ones.
func TestRequestsChangeTheirSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(4 * Small)
		held, err := m.Hold(t.Context(), 2*Small)
		if err != nil {
			t.Fatal(err)
		}
		held.Resize(t.Context(), Small/2)
		other, err := m.Hold(t.Context(), Small+1)
		if err != nil {
			t.Error("what was given back cannot be had")
		}
		if err := held.Resize(t.Context(), Small); err == nil {
			t.Error("a request got what another one holds")
		}
		other.Release()
		if err := held.Resize(t.Context(), Small); err != nil {
			t.Error("a request does not get what is free")
		}
		held.Release()

		for range 2 {
			grows, err := m.Hold(t.Context(), Small)
			if err == nil {
				err = grows.Resize(t.Context(), Small+1)
			}
			if err != nil && err.RetryAfter == 0 {
				t.Error(err)
			}
			defer grows.Release()
		}
		if _, err := m.Hold(t.Context(), Small); err != nil {
			t.Error("a request that has grown keeps small ones waiting")
		}
	})
}

func TestSmallRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(8 * Small)
		var held Held
		for range 4 {
			var err *plugins.Error
			if held, err = m.Hold(t.Context(), Small); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.Hold(t.Context(), Small); err == nil {
			t.Error("more is held than there may be")
		}
		held.Resize(t.Context(), 10)
		if _, err := m.Hold(t.Context(), Small-10); err != nil {
			t.Error("what was given back is held by nobody, and cannot be had")
		}
	})
}
