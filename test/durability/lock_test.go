//go:build linux

package durability

import (
	"bytes"
	"maps"
	"os"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/freeport"
)

// TestLocked has another program lock the database. Calls must pass meanwhile,
// and their records be there when the lock is gone, also when the process ends
// and starts in between.
func TestLocked(t *testing.T) {
	for _, end := range []struct {
		name string
		end  func(*weir)
		slow bool
	}{
		{"running on", nil, false},
		{"killed", (*weir).kill, false},
		{"ended", func(w *weir) { w.terminate(); w.wait() }, true},
	} {
		t.Run(end.name, func(t *testing.T) {
			if end.slow && !*full {
				t.Skip("waits until the process gives up on the database; -full takes it")
			}
			t.Parallel()
			p := newProvider(t)
			w := newWeir(t, p)
			w.start(config{})
			since := time.Now()
			before := succeed(t, p, w, 20, 0)
			w.flush()

			unlock := w.lock()
			locked := succeed(t, p, w, rounds(60, 1000), 0)
			for end := time.Now().Add(time.Duration(rounds(0, 60)) * time.Second); end.After(time.Now()); {
				maps.Copy(locked, succeed(t, p, w, 20, 0))
				time.Sleep(time.Second)
			}
			w.await("the lock shows in the status", func() bool { return w.status().Error != "" })
			if w.ready() == nil {
				t.Error("a store that takes no records counts as ready")
			}
			if n := w.metric("weir_store_failing"); n != 1 {
				t.Errorf("weir_store_failing is %v", n)
			}
			if got := w.status().PendingRecords; got < int64(len(locked)) {
				t.Errorf("%d records wait, of %d: the database was not locked", got, len(locked))
			}
			records := w.records(since)
			for c, id := range before {
				c.check(t, records[c.name()], id)
			}
			if end.end != nil {
				end.end(w)
				w.launch(config{})
				w.await("the process takes calls", w.listens)
			}
			last := succeed(t, p, w, 20, 0)
			unlock()

			w.account(since, before, locked, last, succeed(t, p, w, 20, 0))
			if n := w.status().lost(); n != 0 {
				t.Errorf("%d records are counted as lost", n)
			}
			w.await("the store is well again", func() bool { return w.ready() == nil && w.status().Error == "" })
		})
	}
}

// TestJournalFull locks the database for longer than the journal has room.
func TestJournalFull(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{store: "max_journal 512KiB"})
	since := time.Now()
	unlock := w.lock()
	calls := succeed(t, p, w, 40, 32<<10)
	if w.status().lost() == 0 {
		t.Error("nothing is counted as lost, with a full journal")
	}
	unlock()
	w.flush()
	w.account(since, calls, succeed(t, p, w, 20, 0))
}

// TestTwoProcesses starts a second process on the same files, which must say why
// it cannot, and leave the first alone.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{})
	since := time.Now()
	before := succeed(t, p, w, 20, 0)
	other := &weir{t: t, program: w.program, dir: w.dir, admin: freeport.Address(t), site: freeport.Address(t), upstream: p.URL}
	other.launch(config{})
	if err := other.process.Wait(); err == nil {
		t.Error("a second process ran on the same files")
	}
	log, err := os.ReadFile(w.log())
	if err != nil || !bytes.Contains(log, []byte("in use by another process")) {
		t.Errorf("the second process did not say why it ended: %v", err)
	}
	w.account(since, before, succeed(t, p, w, 20, 0))
}

// TestOneAddress starts a second process, with files of its own, on the address of
// the first, which must say why it cannot, and get none of the first's calls.
func TestOneAddress(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{})
	other := newWeir(t, p)
	other.site = w.site
	other.launch(config{})
	if err := other.process.Wait(); err == nil {
		t.Error("a second process ran on the same address")
	}
	other.process = nil
	log, err := os.ReadFile(other.log())
	if err != nil || !bytes.Contains(log, []byte("another Weir serves "+w.site)) {
		t.Errorf("the second process did not say why it ended: %v", err)
	}
	since := time.Now()
	w.account(since, succeed(t, p, w, 20, 0))
}

// lock locks the database as another program might.
func (w *weir) lock() (unlock func()) {
	w.t.Helper()
	w.flush() // the database is made in the background
	db := w.open("mode=rw&_busy_timeout=10000")
	if _, err := db.Exec("BEGIN EXCLUSIVE"); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if _, err := db.Exec("COMMIT"); err != nil {
			w.t.Error(err)
		}
		db.Close()
	}
}
