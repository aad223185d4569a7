//go:build linux

package durability

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// second is a configuration with a second store and a site for it.
func (w *weir) second() config {
	return config{
		llm: `store second sqlite ` + filepath.Join(w.dir, "data", "second.db") + `
			org other {
				store second
				key other-key
			}`,
		site: `handle_path /second/* {
			llm_proxy openai ` + w.upstream + ` {
				store second
				org other
			}
		}
		handle_path /other/* {
			llm_query {
				store second
			}
		}`,
	}
}

// TestReload reloads changing configurations under live streams, which must not
// notice, and neither must their records.
func TestReload(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	both := w.second()
	w.start(both)
	configs := []config{
		{},
		{store: "retention 90d"},
		{store: "retention 90d\ncontent_retention 30d", llm: "key another-key query"},
		{store: "max_journal 2GiB", global: "grace_period 5s"},
		both,
		{llm: "header_prefix Helicone", global: "log {\nformat llm\n}"},
	}
	for _, c := range configs { // what a first reload allocates, it may keep
		if err := w.reload(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.reload(both); err != nil {
		t.Fatal(err)
	}
	// A store keeps up to four connections that read, and opens them as it asks: also
	// for its files of columns, when nothing has come for a while.
	for range 4 {
		w.records(time.Now())
		w.query("/other", "other-key", time.Now())
	}
	goroutines, descriptors := w.goroutines(), w.descriptors()
	opened := watch(t, filepath.Join(w.dir, "data"), filepath.Join(w.dir, "data", "weir.db.segments"), filepath.Join(w.dir, "data", "second.db.segments"))
	since := time.Now()

	var clients sync.WaitGroup
	var done atomic.Bool
	hold := make(chan struct{})
	streams := make([]*call, rounds(20, 50))
	streamed := make([]outcome, len(streams))
	for i := range streams {
		c := p.call(dialects[i%len(dialects)])
		c.stream, c.hold = true, hold
		c.pieces, c.pause = 60, 30*time.Millisecond
		if i%4 == 0 {
			c.encoding = "gzip"
		}
		if i%5 == 0 && c.dialect == chat {
			c.site = "/second"
		}
		streams[i] = c
		clients.Go(func() { streamed[i] = c.must(t, w) })
	}
	var mu sync.Mutex
	single, refused := map[*call]string{}, 0
	for range 4 {
		clients.Go(func() {
			for !done.Load() {
				c := p.call(dialects[rand.N(len(dialects))])
				c.sized = true
				o := c.do(t.Context(), w)
				mu.Lock()
				switch {
				case o.ended:
					single[c] = o.id
				case c.begun.Load():
					t.Errorf("%s: %v", c.name(), o.err)
				default:
					// The kernel resets connections that wait on a listener
					// which closes, unless net.ipv4.tcp_migrate_req is set:
					// Caddy never saw them.
					refused++
				}
				mu.Unlock()
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	w.await("all streams run", func() bool { return p.answering(streams) })
	reloads := rounds(8, 100)
	for i := range reloads {
		time.Sleep(50*time.Millisecond + rand.N(50*time.Millisecond))
		if err := w.reload(configs[i%len(configs)]); err != nil {
			t.Fatalf("reload %d: %v", i, err)
		}
	}
	if err := w.reload(both); err != nil {
		t.Fatal(err)
	}
	done.Store(true)
	close(hold)
	clients.Wait()
	for _, path := range []string{"weir.db", "weir.db.segments/lock", "second.db"} {
		if _, err := os.ReadFile(filepath.Join(w.dir, "data", path)); err != nil { // an opening that must be seen
			t.Fatal(err)
		}
		name := filepath.Base(path)
		w.await("the watch saw "+name, func() bool { return opened.count(name) > 0 })
		if n := opened.count(name); n != 1 {
			t.Errorf("%s was opened %d times by the reloads", name, n-1)
		}
	}

	w.flush()
	records, others := w.records(since), w.query("/other", "other-key", since)
	for i, c := range streams {
		if c.site != "" {
			c.check(t, others[c.name()], streamed[i].id)
		} else {
			c.check(t, records[c.name()], streamed[i].id)
		}
	}
	for c, id := range single {
		c.check(t, records[c.name()], id)
	}
	if want := len(single) + len(streams); len(records)+len(others) != want {
		t.Errorf("%d records of %d calls", len(records)+len(others), want)
	}
	w.wantBalance(len(records), nil)
	if b := w.balances()["second"]; b.Recorded != int64(len(others)) {
		t.Errorf("%d records in the second store, and its balance is %+v", len(others), b)
	}
	if n := w.status().Appended; n < int64(len(records)) {
		t.Errorf("the store that is open now took %d of %d records: it was opened anew", n, len(records))
	}
	w.await("goroutines and descriptors are as many as before", func() bool {
		return w.goroutines() <= goroutines+10 && w.descriptors() <= descriptors+6
	})
	t.Logf("%d reloads, %d streams, %d other calls, %d connections refused; %d to %d goroutines, %d to %d descriptors",
		reloads, len(streams), len(single), refused, goroutines, w.goroutines(), descriptors, w.descriptors())
}
