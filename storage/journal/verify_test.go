package journal

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/storage"
)

// verifying is a backend that counts how often it verifies its files.
type verifying struct {
	backend
	times atomic.Int64
}

func (b *verifying) Verify(context.Context) ([]string, error) {
	b.times.Add(1)
	return nil, nil
}

// A backend verifies its files once a day, however often Weir starts.
func TestStartsVerifyOnceADay(t *testing.T) {
	b, dir, began := new(verifying), t.TempDir(), time.Now()
	times := int64(0)
	for n, last := range []int{0, 0, 0, 3, 3} { // the start of the last verification
		at := func(start int) time.Time { return began.Add(time.Duration(start) * 11 * time.Hour) }
		j := open(t, b, Options{Dir: dir, now: func() time.Time { return at(n) }})
		eventually(t, "the last verification is remembered", func() bool { return j.checkpoints.verified() == storage.Millis(at(last)) })
		appendSample(t, j, n)
		flush(t, j)
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if last == n {
			times++
		}
		if got := b.times.Load(); got != times {
			t.Errorf("after %v, the backend has verified its files %d times, want %d", at(n).Sub(began), got, times)
		}
	}
}
