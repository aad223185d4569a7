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
		m := NewMemory(64 << 20)
		held, err := m.Hold(t.Context(), 60<<20)
		if err != nil {
			t.Fatalf("a request over the bound is not admitted alone: %v", err)
		}
		for range 8 {
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

// What a large request gives back is as many copies of its bytes as it held.
func TestLargeRequestsGiveBack(t *testing.T) {
	m := NewMemory(2 * copies * 4 * Small)
	held, err := m.Hold(t.Context(), 4*Small)
	if err != nil {
		t.Fatal(err)
	}
	held.Reduce(2 * Small)
	if _, err := m.Hold(t.Context(), 2*Small); err != nil {
		t.Error("what was given back cannot be had")
	}
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
		held.Reduce(10)
		if _, err := m.Hold(t.Context(), Small-10); err != nil {
			t.Error("what was given back is held by nobody, and cannot be had")
		}
	})
}
