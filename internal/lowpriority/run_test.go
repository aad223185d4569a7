package lowpriority_test

import (
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/lowpriority"
)

func TestRunReturnsAndPanics(t *testing.T) {
	ran := false
	lowpriority.Run(func() { ran = true })
	if !ran {
		t.Error("Run returned before do did")
	}
	abort := errors.New("abort")
	defer func() {
		if got := recover(); got != any(abort) {
			t.Errorf("Run panics with %v, want what do panics with", got)
		}
	}()
	lowpriority.Run(func() { panic(abort) })
}

// Go has more threads at work while something runs, and some time after that as many as
// before: more make each call of the traffic dearer.
func TestThreadsAreThereForRunAlone(t *testing.T) {
	const allowed = 2
	before := runtime.GOMAXPROCS(0)
	want := before
	if before <= 4 && os.Getenv("GOMAXPROCS") == "" {
		want += allowed
	}
	lowpriority.Allow(allowed)
	t.Cleanup(func() { lowpriority.Allow(0) })
	if got := runtime.GOMAXPROCS(0); got != before {
		t.Errorf("%d threads before anything runs, want %d", got, before)
	}
	lowpriority.Run(func() {
		lowpriority.Run(func() {}) // which leaves the threads to the other one
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("%d threads in Run, want %d", got, want)
		}
	})
	for deadline := time.Now().Add(10 * time.Second); runtime.GOMAXPROCS(0) != before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d threads ten seconds behind Run, want %d", runtime.GOMAXPROCS(0), before)
		}
	}
}
