package admission

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/weirhq/weir/plugins"
)

// Answers that are read at the same time take no more than the memory that there is: those
// that find none are refused, and the others are whole.
func TestAnswersAreBounded(t *testing.T) {
	for _, announces := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			m := NewMemory(8 * Small)
			const size = Small // each takes twice as much, of a half of 4 * Small
			whole, refused := 0, 0
			var held []*Answer
			for range 4 {
				announced := int64(-1)
				if announces {
					announced = size
				}
				a := m.Of(fmt.Sprint(len(held))).Answer(t.Context(), announced, 2*size)
				held = append(held, a)
				n, err := io.Copy(io.Discard, a.Reader(strings.NewReader(strings.Repeat("x", size))))
				if e, ok := errors.AsType[*plugins.Error](err); ok && e.Status == 503 && e.RetryAfter > 0 {
					refused++
				} else if err == nil && n == size {
					whole++
				} else {
					t.Error(n, err)
				}
			}
			want := 1 // takes what the longest takes
			if announces {
				want = 2
			}
			if whole != want || refused != 4-want {
				t.Errorf("announced: %v; %d are whole, %d refused", announces, whole, refused)
			}
			for _, a := range held {
				a.Release()
			}
			if h, err := m.Hold(t.Context(), m.Largest()); err != nil || h.weight != m.Largest() {
				t.Error("what was released is held:", err)
			}
		})
	}
}

// An answer that could not hold what it takes is refused, however it says how long it is. One of a
// process with enough memory has its own bound.
func TestNoAnswerTakesMoreThanItCanHold(t *testing.T) {
	const size = 4 * Small
	for _, c := range []struct {
		memory int64
		whole  bool
	}{{8 * Small, false}, {16 * Small, true}} {
		for _, announced := range []int64{-1, size} {
			a := NewMemory(c.memory).Answer(t.Context(), announced, size)
			n, err := io.Copy(io.Discard, a.Reader(strings.NewReader(strings.Repeat("x", size))))
			e, refused := errors.AsType[*plugins.Error](err)
			if c.whole != (n == size && err == nil) || c.whole == (refused && e.Status == 502 && a.Refused() && n <= 2*Small+32<<10) {
				t.Errorf("of %d bytes, announced as %d, with a memory of %d: %d, %v", size, announced, c.memory, n, err)
			}
			a.Release()
		}
	}
}
