//go:build linux

package durability

import (
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestRequestID uses the same Service-Request-Id again and again: at the same
// time, later, after a reload, and after a crash. One call gets it, and no call
// goes without a record.
func TestRequestID(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{})
	since := time.Now()
	id := uuid.NewString()
	ids := map[*call]string{}
	winners := 0
	again := func(n int) {
		t.Helper()
		var mu sync.Mutex
		var clients sync.WaitGroup
		for i := range n {
			c := p.call(dialects[i%len(dialects)])
			c.header.Set("Service-Request-Id", id)
			clients.Go(func() {
				o := c.must(t, w)
				mu.Lock()
				defer mu.Unlock()
				ids[c] = o.id
				if o.id == id {
					winners++
				}
			})
		}
		clients.Wait()
		if winners != 1 {
			t.Errorf("%d calls got the id, want 1", winners)
		}
	}
	again(20)
	again(3)
	if err := w.reload(config{store: "retention 90d"}); err != nil {
		t.Fatal(err)
	}
	// Caddy closes the listeners of the configuration before in the background, and with
	// them connections that nobody has accepted yet.
	time.Sleep(200 * time.Millisecond)
	again(3)
	w.kill()
	w.start(config{})
	again(3)
	w.flush()
	again(3)

	w.flush()
	records := w.records(since)
	for c, id := range ids {
		c.check(t, records[c.name()], id)
	}
	w.wantBalance(len(ids), nil)
	if len(records) != len(ids) {
		t.Errorf("%d records of %d calls", len(records), len(ids))
	}
}
