package admission

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/metric"
)

var few = Limits{Running: 2, RunningPerKey: 1, Waiting: 4, WaitingPerKey: 3, Wait: time.Minute}

// A key with many waits for itself alone.
func TestTurnsGoRound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(metric.Constant("test"), few)
		release, ok := turns.Take(t.Context(), "many")
		if !ok {
			t.Fatal("the first is refused")
		}
		var mu sync.Mutex
		var order []string
		var running sync.WaitGroup
		for i, key := range []string{"many", "many", "many", "few", "few"} {
			running.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond) // in this order
				release, ok := turns.Take(t.Context(), key)
				mu.Lock()
				order = append(order, fmt.Sprint(key, " ", ok))
				mu.Unlock()
				time.Sleep(time.Second)
				if ok {
					release()
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := fmt.Sprint(order); got != "[few true]" {
			t.Errorf("beside a running query of another key ran %s", got)
		}
		if _, ok := turns.Take(t.Context(), "many"); ok {
			t.Error("more wait for a key than may")
		}
		release()
		running.Wait()
		if len(order) != 5 {
			t.Errorf("ran %v", order)
		}
		if turns.running != 0 || turns.waiting != 0 || len(turns.queues) != 0 || len(turns.order) != 0 {
			t.Errorf("left behind %+v", turns)
		}
	})
}

// Who waits too long, or leaves, keeps no turn.
func TestTurnsAreGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := NewTurns(metric.Constant("test"), few)
		release, _ := turns.Take(t.Context(), "a")
		begin := time.Now()
		if _, ok := turns.Take(t.Context(), "a"); ok || time.Since(begin) != few.Wait {
			t.Errorf("waited %s, %v", time.Since(begin), ok)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin = time.Now()
		if _, ok := turns.Take(ctx, "a"); ok || time.Since(begin) != time.Second {
			t.Errorf("waited %s after it left, %v", time.Since(begin), ok)
		}
		release()
		again, ok := turns.Take(t.Context(), "a")
		if !ok {
			t.Fatal("refused although nobody runs")
		}
		again()
		if turns.running != 0 || turns.waiting != 0 || len(turns.queues) != 0 || len(turns.order) != 0 {
			t.Errorf("left behind %+v", turns)
		}
	})
}

func TestTurnsAreFew(t *testing.T) {
	turns := NewTurns(metric.Constant("test"), Limits{Running: 3, RunningPerKey: 2, Waiting: 100, WaitingPerKey: 100, Wait: time.Minute})
	var mu sync.Mutex
	running := make(map[string]int)
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			key := fmt.Sprint(i % 3)
			release, ok := turns.Take(t.Context(), key)
			if !ok {
				return
			}
			mu.Lock()
			running[key]++
			if n := running["0"] + running["1"] + running["2"]; n > 3 || running[key] > 2 {
				t.Errorf("%d run, %d of one key", n, running[key])
			}
			mu.Unlock()
			for range 1000 {
				_ = fmt.Sprint(i)
			}
			mu.Lock()
			running[key]--
			mu.Unlock()
			release()
		})
	}
	all.Wait()
}
