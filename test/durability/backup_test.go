//go:build linux

package durability

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// command runs a command of Weir and returns what it prints.
func (w *weir) command(args ...string) string {
	w.t.Helper()
	c := exec.Command(w.program, args...)
	c.Env = append(os.Environ(), asWeir+"=1", "WEIR_ADMIN="+w.admin)
	output, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("weir %s: %v\n%s", strings.Join(args, " "), err, output)
	}
	return string(output)
}

// rate makes calls, so many a second, until the end.
func rate(t *testing.T, p *provider, w *weir, persecond int, end <-chan struct{}) map[*call][2]time.Time {
	made := map[*call][2]time.Time{}
	var mu sync.Mutex
	var clients sync.WaitGroup
	defer clients.Wait()
	tick := time.NewTicker(time.Second / time.Duration(persecond))
	defer tick.Stop()
	for n := 0; ; n++ {
		select {
		case <-end:
			clients.Wait()
			return made
		case <-tick.C:
		}
		clients.Go(func() {
			c := p.call(dialects[n%len(dialects)])
			c.stream = n%2 == 0
			from := time.Now()
			c.must(t, w)
			mu.Lock()
			defer mu.Unlock()
			made[c] = [2]time.Time{from, time.Now()}
		})
	}
}

// TestBackup makes backups under load, as docs/operations.md says, and starts another
// Weir on each. It must have every call that had ended when a call of it began, each as
// the first one has it, and nothing of what began when the backup was made; and it must
// take more.
func TestBackup(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	w.start(config{})
	since := time.Now()
	dir := t.TempDir()
	var made []string
	var took []time.Duration
	ended := make(chan struct{})
	var calls map[*call][2]time.Time
	var load sync.WaitGroup
	load.Go(func() { calls = rate(t, p, w, rounds(50, 500), ended) })
	for range rounds(2, 20) {
		time.Sleep(time.Duration(rounds(200, 1000)) * time.Millisecond)
		start := time.Now()
		w.command("backup", dir)
		took = append(took, time.Since(start))
	}
	close(ended)
	load.Wait()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(took) {
		t.Fatalf("%d backups are there, %v", len(entries), err)
	}
	for _, e := range entries {
		made = append(made, filepath.Join(dir, e.Name()))
	}
	w.flush()
	original := w.records(since)
	t.Logf("%d calls; backups took %v", len(calls), timings(took))

	for i, path := range made {
		restored := newWeir(t, p)
		data := filepath.Dir(restored.database())
		w.command("check", path)
		w.command("restore", path, data)
		w.command("check", data)
		restored.start(config{})
		restored.flush()
		records := restored.records(since)
		var first, last time.Time // end of what is missing, begin of what is there
		for c, at := range calls {
			r := records[c.name()]
			switch {
			case r == nil || r.EndState == "interrupted":
				if first.IsZero() || at[1].Before(first) {
					first = at[1]
				}
			case !reflect.DeepEqual(r, original[c.name()]):
				t.Errorf("%s is restored as %+v, and was %+v", c.name(), r, original[c.name()])
			case at[0].After(last):
				last = at[0]
			}
		}
		if !first.IsZero() && last.After(first) {
			t.Errorf("backup %d lacks a call that ended %v before one began that it has", i, last.Sub(first))
		}
		if len(records) == 0 {
			t.Errorf("backup %d has no records", i)
		}
		t.Logf("backup %d has %d calls", i, len(records))
		succeed(t, p, restored, 10, 0)
		restored.flush()
		restored.balances()
		restored.terminate()
		restored.wait()
	}
}
