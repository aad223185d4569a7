//go:build linux

package trust

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLocked has another program lock the database. Calls must pass meanwhile,
// and their records be there when the lock is gone, also when the process ends
// and starts in between.
func TestLocked(t *testing.T) {
	for _, end := range []struct {
		name string
		end  func(*weir)
	}{
		{"running on", nil},
		{"killed", (*weir).kill},
		{"ended", func(w *weir) { w.terminate(); w.wait() }},
	} {
		t.Run(end.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			w := newWeir(t, p)
			w.start(config{})
			since := time.Now()
			before := succeed(t, p, w, 20, 0)
			w.flush()

			unlock := w.lock()
			locked := succeed(t, p, w, rounds(60, 1000), 0)
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

// TestDiskFull fills the disk of the store.
func TestDiskFull(t *testing.T) {
	for _, disk := range []struct {
		name string
		fill func(w *weir) (free func())
		data func(t *testing.T, dir string)
	}{
		{"a file system without space", fillFileSystem, mountSmall},
		{"files that cannot grow", limitFiles, func(*testing.T, string) {}},
	} {
		t.Run(disk.name, func(t *testing.T) {
			t.Parallel()
			p := newProvider(t)
			w := newWeir(t, p)
			disk.data(t, filepath.Join(w.dir, "data"))
			w.start(config{})
			since := time.Now()
			before := succeed(t, p, w, 20, 8<<10)
			w.flush()
			free := disk.fill(w)
			full := succeed(t, p, w, 40, 16<<10)
			if w.status().lost() == 0 {
				t.Error("nothing is counted as lost, with a full disk")
			}
			free()
			after := succeed(t, p, w, 20, 8<<10)
			w.account(since, before, full, after)

			w.kill()
			w.start(config{})
			w.flush()
			records := w.records(since)
			for c, id := range before {
				c.check(t, records[c.name()], id)
			}
			for c, id := range after {
				c.check(t, records[c.name()], id)
			}
		})
	}
}

// mountSmall mounts a small file system.
func mountSmall(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Skipf("mounting a file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// fillFileSystem takes what space is left beside the database.
func fillFileSystem(w *weir) (free func()) {
	w.t.Helper()
	path := filepath.Join(w.dir, "data", "filler")
	f, err := os.Create(path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := f.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	return func() {
		if err := os.Remove(path); err != nil {
			w.t.Error(err)
		}
	}
}

// limitFiles forbids the process to write to files.
func limitFiles(w *weir) (free func()) {
	w.t.Helper()
	var before unix.Rlimit
	if err := unix.Prlimit(w.pid(), unix.RLIMIT_FSIZE, nil, &before); err != nil {
		w.t.Fatal(err)
	}
	set := func(current uint64) {
		if err := unix.Prlimit(w.pid(), unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: current, Max: before.Max}, nil); err != nil {
			w.t.Fatal(err)
		}
	}
	set(0)
	return func() { set(before.Cur) }
}

// lock locks the database as another program might.
func (w *weir) lock() (unlock func()) {
	w.t.Helper()
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

// losses is what the database says was lost.
func (w *weir) losses() (sum int64) {
	w.t.Helper()
	db := w.open("mode=ro&_busy_timeout=10000")
	defer db.Close()
	if err := db.QueryRow("SELECT coalesce(sum(count), 0) FROM losses").Scan(&sum); err != nil {
		w.t.Fatal(err)
	}
	return sum
}

// account holds the records against the calls: what has none must be counted
// as lost, in the status and in the metrics.
func (w *weir) account(since time.Time, made ...map[*call]string) {
	w.t.Helper()
	w.flush()
	records := w.records(since)
	calls, missing := 0, 0
	for _, ids := range made {
		for c, id := range ids {
			calls++
			if r := records[c.name()]; r == nil {
				missing++
			} else {
				c.check(w.t, r, id)
			}
		}
	}
	lost := w.status().lost()
	if int(lost) != missing {
		w.t.Errorf("%d of %d records are missing, and %d are counted as lost: %v", missing, calls, lost, w.status().Lost)
	}
	if n := w.metric("weir_records_lost_total"); int64(n) != lost {
		w.t.Errorf("weir_records_lost_total is %v, the status says %d", n, lost)
	}
	w.t.Logf("%d calls, %d records missing, %d counted as lost", calls, missing, lost)
	w.await("the losses stand in the database", func() bool { return w.losses() == lost })
}
