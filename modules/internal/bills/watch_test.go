package bills

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/modules/internal/alert"
	"github.com/weirhq/weir/plugins"
)

// Reports are made while nobody waits, again after some hours, and one bill that cannot be read
// takes nothing from another.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked atomic.Int64
		another := false
		w := &Watch{
			Context: t.Context(), Bills: []*Bill{{Name: "good"}, {Name: "bad"}},
			Lease: func(context.Context, time.Duration) (bool, error) { return !another, nil },
			Compare: func(_ context.Context, b *Bill, window reconcile.Window) (*reconcile.Report, error) {
				if last := reconcile.DayOf(time.Now().AddDate(0, 0, -2)); window.To-window.From != 7 || window.To-1 != last {
					t.Errorf("the window is %v; its last day is the one before yesterday, %v", window, last)
				}
				time.Sleep(time.Minute)
				if b.Name == "bad" {
					return nil, &UnreadableError{b.Name, errors.New("401")}
				}
				asked.Add(1)
				return &reconcile.Report{}, nil
			},
		}
		reports := func(bills int, times int64, want error) {
			t.Helper()
			synctest.Wait()
			got, err := w.Reports(7)
			if len(got) != bills || asked.Load() != times || (want == nil) != (err == nil) || want != nil && !errors.Is(err, want) && err.Error() != want.Error() {
				t.Errorf("%d bills (%v) after %d comparisons; expected %d (%v) after %d", len(got), err, asked.Load(), bills, want, times)
			}
		}
		unreadable := errors.New("bill bad: 401")
		reports(0, 0, alert.ErrNotYet)
		time.Sleep(3 * time.Minute)
		reports(1, 1, unreadable)
		time.Sleep(50 * time.Minute)
		reports(1, 1, unreadable)
		time.Sleep(10 * time.Minute) // an error is tried again after an hour
		reports(1, 1, unreadable)
		time.Sleep(3 * time.Minute)
		w.Bills = w.Bills[:1]
		reports(1, 2, unreadable)
		time.Sleep(time.Hour)
		reports(1, 2, unreadable)
		time.Sleep(3 * time.Minute)
		reports(1, 3, nil)
		time.Sleep(5 * time.Hour)
		reports(1, 3, nil)
		time.Sleep(2 * time.Hour)
		reports(1, 3, nil)
		time.Sleep(3 * time.Minute)
		reports(1, 4, nil)
		another = true // node has the lease
		time.Sleep(7 * time.Hour)
		reports(1, 4, nil)
		reports(0, 4, alert.ErrNotYet)
	})
}

// Timing adds up to nothing, and is a difference all the same; what has no price counts by the total.
func TestDollars(t *testing.T) {
	r := &reconcile.Report{Differences: []reconcile.Difference{{Cost: plugins.KnownCost(2e9)}, {Cost: plugins.KnownCost(-2e9)}}}
	if got := Dollars(r); got != 4 {
		t.Error(got)
	}
	r = &reconcile.Report{Differences: []reconcile.Difference{{}}, Billed: reconcile.Sum{Cost: plugins.KnownCost(9e9)}, Recorded: reconcile.Sum{Cost: plugins.KnownCost(2e9)}}
	if got := Dollars(r); got != 7 {
		t.Error(got)
	}
}
