package admission

import (
	"context"
	"fmt"
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
		for range 3 {
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
		other, err := m.Of("other").Hold(t.Context(), Small+1)
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

		for _, owner := range []string{"one", "other"} {
			grows, err := m.Of(owner).Hold(t.Context(), Small)
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

// An owner takes three quarters of what there is, and each of those that come later as large a part
// of the rest: none is left without.
func TestNoOwnerTakesTheMemoryOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const unit = 1 << 10
		m := NewMemory(2 * 64 * unit)
		now, cancel := context.WithCancel(t.Context())
		cancel()
		for i, want := range []int{48, 12, 3} {
			n := 0
			for ; ; n++ {
				if _, err := m.Of(fmt.Sprint(i)).Hold(now, unit); err != nil {
					break
				}
			}
			if n != want {
				t.Errorf("owner %d gets %d of 64, want %d", i, n, want)
			}
		}
		if _, err := m.Of("").Hold(now, unit); err != nil {
			t.Error("one that has nothing gets nothing of what is free")
		}
	})
}

// The requests of an owner that has all it may wait for each other, and for no other's; they go on
// in their order, and who gives up waiting keeps no place.
func TestOwnersDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(2 * 64)
		first, _ := m.Of("one").Hold(t.Context(), 48)
		done := make(chan string, 3)
		for _, name := range []string{"a", "b"} {
			go func() {
				held, err := m.Of("one").Hold(t.Context(), 40)
				if err != nil {
					name = "refused " + name
				}
				done <- name
				time.Sleep(time.Second)
				held.Release()
			}()
			synctest.Wait()
		}
		left, leave := context.WithCancel(t.Context())
		go func() { _, _ = m.Of("one").Hold(left, 48) }()
		synctest.Wait()
		leave()
		begin := time.Now()
		other, err := m.Of("other").Hold(t.Context(), 12)
		if err != nil || time.Since(begin) > 0 {
			t.Errorf("another owner waits %s: %v", time.Since(begin), err)
		}
		other.Release()
		first.Release()
		if one, two := <-done, <-done; one != "a" || two != "b" {
			t.Error(one, two)
		}
		time.Sleep(2 * time.Second)
	})
}

func TestSmallRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(8 * Small)
		var held Reservation
		for i := range 4 {
			var err *plugins.Error
			if held, err = m.Of(fmt.Sprint(i)).Hold(t.Context(), Small); err != nil {
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
