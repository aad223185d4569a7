//go:build linux

package durability

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestKill ends the process under load, again and again on the same files. The
// record of every answer that a client had to its end must be there afterwards,
// once, and whole.
func TestKill(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	began := time.Now()
	ended := map[*call]string{} // and the record's id
	configs := []config{
		{},
		{store: "sync"},
		{store: "content_retention 10m", site: "log"},
		{store: "max_journal 64MiB", global: "debug"},
	}
	kills := killings()
	for round := range kills {
		c := configs[round%len(configs)]
		if round%5 == 4 { // a crash while it catches up
			w.launch(c)
			time.Sleep(rand.N(200 * time.Millisecond))
			w.kill()
		}
		w.start(c)
		since := time.Now()
		fresh := load(t, p, w, lifetime())
		w.start(c)
		w.flush()
		records := w.records(since)
		for c, id := range fresh {
			if chosen := c.header.Get("Service-Request-Id"); chosen != "" && id != chosen {
				t.Errorf("the id %s became %s", chosen, id)
			}
			c.check(t, records[c.name()], id)
			ended[c] = id
		}
		if t.Failed() {
			t.Fatalf("round %d: %d answers ended, %d records", round, len(fresh), len(records))
		}
		w.kill()
	}
	w.start(config{})
	w.flush()
	records := w.records(began)
	for c, id := range ended {
		c.check(t, records[c.name()], id)
	}
	for name, r := range records {
		if _, err := uuid.Parse(r.ID); err != nil || r.Status != nil && *r.Status != 200 && *r.Status != 499 {
			t.Errorf("%s has a strange record: %s, status %s", name, r.ID, number(r.Status))
		}
	}
	w.wantInterrupted(len(records), kills*clients)
	w.checkDatabase()
	t.Logf("%d answers ended before a kill, %d records", len(ended), len(records))
}

// clients is how many make calls at a time under load.
const clients = 32

// lifetime is how long a process lives under load before it is killed: up to 300 ms, and up
// to a second if all rounds are taken. A call takes some 10 ms, so that a kill in either time
// finds calls in every state.
func lifetime() time.Duration {
	return rand.N(time.Duration(rounds(300, 1000)) * time.Millisecond)
}

// load makes calls from clients and kills the process after a while. It
// returns the calls whose answers the clients had to their ends.
func load(t *testing.T, p *provider, w *weir, while time.Duration) map[*call]string {
	ended := map[*call]string{}
	var mu sync.Mutex
	var killed atomic.Bool
	var group sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), waitLimit)
	defer cancel()
	for range clients {
		group.Go(func() {
			for !killed.Load() {
				c := p.random()
				o := c.do(ctx, w)
				switch {
				case o.ended && o.err != nil:
					t.Error(o.err)
				case o.ended:
					mu.Lock()
					ended[c] = o.id
					mu.Unlock()
				case !killed.Load():
					t.Errorf("%s: %v", c.name(), o.err)
				}
			}
		})
	}
	time.Sleep(while)
	killed.Store(true)
	w.kill()
	group.Wait()
	return ended
}

// random returns a call of any kind.
func (p *provider) random() *call {
	c := p.call(dialects[rand.N(len(dialects))])
	c.stream = rand.N(3) > 0
	c.sized = rand.N(2) == 0
	c.encoding = encodings[rand.N(len(encodings))]
	c.pieces = 1 + rand.N(20)
	if rand.N(2) == 0 {
		c.pause = rand.N(10 * time.Millisecond)
	}
	if rand.N(2) == 0 { // the kill may come after the terminal event
		c.linger = rand.N(200 * time.Millisecond)
	}
	if rand.N(3) == 0 {
		c.header.Set("Service-Request-Id", uuid.NewString())
	}
	if rand.N(4) == 0 {
		c.header.Set("Service-Omit-Request", "true")
	}
	if rand.N(4) == 0 {
		c.header.Set("Service-Omit-Response", "true")
	}
	return c
}
