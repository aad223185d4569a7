package cache

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// interleavings is how many times TestInterleavings lets callers in:
//
//	go test -run Interleavings ./modules/internal/cache -interleavings 10000
var interleavings = flag.Int("interleavings", 200, "how many times callers ask at the same time")

// crowd are callers of some organisations who ask a provider through a cache.
type crowd struct {
	t       *testing.T
	random  *rand.Rand // of the test's goroutine
	ledger  *ledger
	cache   *Cache
	process context.Context // ends when the process is killed

	mu     sync.Mutex
	given  map[string]string  // questions with their organisation, by the answer; guarded by mu
	erased map[uuid.UUID]bool // guarded by mu
	asked  map[string]int     // how often the provider was asked, by question with organisation; guarded by mu
	hits   int                // guarded by mu
}

// fate is what becomes of a call that leads.
type fate int

const (
	answers fate = iota // the provider answers
	fails               // the provider fails
	breaks              // the answer breaks off
	leaves              // the client leaves
	refused             // a budget refuses the call
	fates
)

// call is what one of the callers does.
type call struct {
	org, prompt  string
	after, takes time.Duration // until it asks, and how long the provider takes
	fate         fate
	buckets      int
}

func (c *crowd) ask(of call) {
	ctx, cancel := context.WithCancel(c.process)
	defer cancel()
	time.Sleep(of.after)
	q := asking(fmt.Sprintf(`{"model":"m","messages":[{"role":"user","content":%q}]}`, of.prompt))
	q.Org = of.org
	o := *options
	o.Buckets = of.buckets
	if of.fate == leaves { // also while it waits
		defer time.AfterFunc(of.takes, cancel).Stop()
	}
	c.mu.Lock()
	gone := make(map[uuid.UUID]bool, len(c.erased))
	for id := range c.erased {
		gone[id] = true
	}
	c.mu.Unlock()
	hit, lead, _ := c.cache.Answer(ctx, q, &o)
	question := of.org + " asks " + of.prompt
	switch {
	case hit != nil:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.hits++
		if c.given[string(hit.Body.Data)] != question || hit.Record.Org != of.org || gone[hit.Record.ID] {
			c.t.Errorf("%s, and gets %s of %s (erased: %t)", question, hit.Body.Data, hit.Record.Org, gone[hit.Record.ID])
		}
	case lead != nil:
		c.lead(ctx, lead, of, question)
	case ctx.Err() == nil:
		c.t.Errorf("%s, and gets nothing", question)
	}
}

// lead asks the provider.
func (c *crowd) lead(ctx context.Context, lead *Lead, of call, question string) {
	if of.fate == refused {
		lead.End()
		return
	}
	c.mu.Lock()
	c.asked[question]++
	r := &storage.Record{ID: uuid.New(), Org: of.org, Dialect: plugins.Chat, Status: plugins.Known(200), AnswerCache: storage.CacheMiss}
	body := fmt.Sprintf(`{"canary":%q}`, r.ID)
	c.given[body] = question
	c.mu.Unlock()
	select {
	case <-time.After(of.takes):
	case <-ctx.Done():
		if c.process.Err() != nil {
			return // nothing ends the lead
		}
	}
	switch of.fate {
	case answers:
		c.ledger.add(r, body)
		lead.Save(r, seen, []byte(body), false)
	case breaks:
		r.EndState = storage.UpstreamAborted
		c.ledger.add(r, body)
		lead.Save(r, seen, []byte(body), false)
	case fails:
		lead.Withhold()
	}
	lead.End()
}

// erase removes a record after a time, as an erasure does.
func (c *crowd) erase(after time.Duration) {
	time.Sleep(after)
	id := c.ledger.erase()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erased[id] = true
}

// TestInterleavings lets callers of three organisations ask the same questions at the same time.
// Providers fail, answers break off, clients leave, budgets refuse, records are erased, and the process
// is killed. Each caller gets what the provider has given to its organisation for its question, or
// asks the provider. Where all goes well, equal questions are asked once.
func TestInterleavings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{
			t: t, random: rand.New(rand.NewPCG(53, uint64(*interleavings))), ledger: newLedger(),
			given: make(map[string]string), erased: make(map[uuid.UUID]bool), asked: make(map[string]int),
		}
		dir := t.TempDir()
		var kill context.CancelFunc
		start := func() {
			var err error
			if c.cache, err = Open(dir, []byte("secret"), c.ledger, zap.NewNop()); err != nil {
				t.Fatal(err)
			}
			c.process, kill = context.WithCancel(t.Context())
		}
		stop := func() {
			kill()
			if err := c.cache.Close(); err != nil {
				t.Fatal(err)
			}
		}
		start()
		kills := 0
		for n := range *interleavings {
			well := c.random.IntN(3) == 0
			var callers sync.WaitGroup
			clear(c.asked)
			for range 12 {
				of := call{
					org: string(rune('a' + c.random.IntN(3))), prompt: fmt.Sprint(n, " or ", c.random.IntN(2)), buckets: 1,
					after: time.Duration(c.random.IntN(10)) * time.Millisecond, takes: time.Duration(1+c.random.IntN(10)) * time.Millisecond,
				}
				if !well {
					of.fate, of.buckets = max(answers, fate(c.random.IntN(2*int(fates)))-fates), 1+c.random.IntN(8)/7
					if c.random.IntN(6) == 0 {
						of.prompt = fmt.Sprint(c.random.IntN(n+1), " or ", c.random.IntN(2)) // of before
					}
				}
				callers.Go(func() { c.ask(of) })
			}
			if !well && c.random.IntN(3) == 0 {
				after := time.Duration(c.random.IntN(20)) * time.Millisecond
				callers.Go(func() { c.erase(after) })
			}
			if !well && c.random.IntN(10) == 0 {
				time.Sleep(time.Duration(c.random.IntN(10)) * time.Millisecond)
				kill()
			}
			callers.Wait()
			if c.process.Err() != nil {
				kills++
				stop()
				start()
			}
			for question, n := range c.asked {
				if well && n > 1 {
					t.Errorf("%s, and the provider is asked %d times", question, n)
				}
			}
		}
		stop()
		t.Logf("%d answers of the provider, %d of the cache; %d records are erased, %d processes killed", len(c.given), c.hits, len(c.erased), kills)
		if c.hits == 0 || len(c.erased) == 0 || kills == 0 {
			t.Error("that proves nothing")
		}
	})
}
