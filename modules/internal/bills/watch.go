package bills

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/modules/internal/alert"
	"github.com/weirhq/weir/plugins"
)

// Watch has the newest report of each bill of an organisation, for alerts. The reports are made
// while nobody waits, because a provider and a store may take minutes.
type Watch struct {
	// Context ends what runs when the configuration ends.
	Context context.Context
	Bills   []*Bill
	// Lease reports whether this node compares the bills for a time, and not another one.
	Lease func(ctx context.Context, life time.Duration) (bool, error)
	// Compare compares one of the bills.
	Compare func(context.Context, *Bill, reconcile.Window) (*reconcile.Report, error)

	mu   sync.Mutex
	runs map[int]*run // by the length of the window in days; guarded by mu
}

// run is the newest comparison of all bills over a length of time.
type run struct {
	begun   time.Time
	running bool
	reports map[string]*reconcile.Report // by bill, nil before the first end
	err     error
}

const (
	// interval is the pause between two comparisons, and retryInterval the pause after an error.
	interval      = 6 * time.Hour
	retryInterval = time.Hour
	// reportDelay is the number of days for which providers may still report usage.
	reportDelay = 2
)

// Reports returns the newest reports, by bill, over some days. The last of them is the one before
// yesterday, because providers report usage late. Bills that cannot be read are in the error, which is
// [alert.ErrNotYet] while bills are compared for the first time, and while another node compares them.
func (w *Watch) Reports(days int) (map[string]*reconcile.Report, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.runs == nil {
		w.runs = make(map[int]*run)
	}
	r := w.runs[days]
	if r == nil {
		r = new(run)
		w.runs[days] = r
	}
	pause := interval
	if r.err != nil {
		pause = retryInterval
	}
	if now := time.Now(); !r.running && now.Sub(r.begun) > pause && w.Context.Err() == nil {
		r.running, r.begun = true, now
		to := reconcile.DayOf(now) - reportDelay + 1
		go w.compare(r, reconcile.Window{From: to - reconcile.Day(days), To: to})
	}
	if r.reports == nil && r.err == nil {
		return nil, alert.ErrNotYet
	}
	return r.reports, r.err
}

func (w *Watch) compare(r *run, window reconcile.Window) {
	reports, err := w.compareAll(window)
	w.mu.Lock()
	defer w.mu.Unlock()
	r.running, r.reports, r.err = false, reports, err
}

// compareAll compares all bills, unless another node does.
func (w *Watch) compareAll(window reconcile.Window) (map[string]*reconcile.Report, error) {
	leased, err := w.Lease(w.Context, interval+retryInterval)
	if err != nil {
		return nil, err
	}
	if !leased {
		return nil, alert.ErrNotYet
	}
	reports := make(map[string]*reconcile.Report)
	var all error
	for _, b := range w.Bills {
		report, err := w.Compare(w.Context, b, window)
		if err != nil {
			all = errors.Join(all, err)
			continue
		}
		reports[b.Name] = report
	}
	return reports, all
}

// Dollars is how much of a bill and of the records is not the same, in US dollars: at least what
// both differ by in total, also if the cost of some differences is unknown.
func Dollars(r *reconcile.Report) float64 {
	var sum plugins.Nanodollars
	for _, d := range r.Differences {
		sum += max(d.Cost.N, -d.Cost.N)
	}
	if r.Billed.Cost.Valid && r.Recorded.Cost.Valid {
		total := r.Billed.Cost.N - r.Recorded.Cost.N - r.Rounding.N
		sum = max(sum, total, -total)
	}
	return sum.Dollars()
}
