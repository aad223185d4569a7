//go:build linux

package durability

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// succeed makes n calls from 8 clients, which must all succeed, and returns the
// ids of their records. Answers have at least size bytes.
func succeed(t *testing.T, p *provider, w *weir, n, size int) map[*call]string {
	t.Helper()
	ids := map[*call]string{}
	var mu sync.Mutex
	var clients sync.WaitGroup
	calls := make(chan *call)
	for range 8 {
		clients.Go(func() {
			for c := range calls {
				o := c.must(t, w)
				mu.Lock()
				ids[c] = o.id
				mu.Unlock()
			}
		})
	}
	for i := range n {
		c := p.call(dialects[i%len(dialects)])
		c.stream, c.sized = i%2 == 0, true
		c.text += strings.Repeat("x", size/c.pieces)
		calls <- c
	}
	close(calls)
	clients.Wait()
	return ids
}

// losses are the entries of the journal that are declared lost.
func (w *weir) losses() (sum int64) {
	w.t.Helper()
	for _, l := range w.balances()["default"].Losses {
		sum += l.Entries
	}
	return sum
}

// account holds the records against all calls that the store has seen: what has
// none must be counted as lost, in the balance and in the metrics. So must be the
// last version of a record of which only the one before stands.
func (w *weir) account(since time.Time, made ...map[*call]string) {
	w.t.Helper()
	w.flush()
	records := w.records(since)
	calls, missing := 0, 0
	var early int64 // versions of records, of whose streams the usage came later
	for _, ids := range made {
		for c, id := range ids {
			calls++
			if r := records[c.name()]; r == nil {
				missing++
			} else if c.stream && r.PromptTokens == nil {
				early++
			} else {
				c.check(w.t, r, id)
			}
		}
	}
	b := w.settled()
	if b.Seen != int64(calls) || b.Recorded != int64(len(records)) || b.Lost != int64(missing) {
		w.t.Errorf("%d calls, %d records, %d are missing; the balance is %+v", calls, len(records), missing, b)
	}
	lost := w.status().lost()
	if n := w.metric("weir_records_lost_total"); int64(n) != lost {
		w.t.Errorf("weir_records_lost_total is %v, the status says %d", n, lost)
	}
	if early > lost-int64(missing) {
		w.t.Errorf("%d records lack the usage, and %d versions beside the %d records that are missing are counted as lost", early, lost-int64(missing), missing)
	}
	w.t.Logf("%d calls, %d records missing, %d counted as lost", calls, missing, lost)
	w.await("the losses stand in the database", func() bool { return w.losses() == lost })
}
