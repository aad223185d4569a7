//go:build linux

package durability

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

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

// TestStartOnFullDisk crashes while the disk is full, and starts before it is
// freed.
func TestStartOnFullDisk(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	mountSmall(t, filepath.Join(w.dir, "data"))
	w.start(config{})
	since := time.Now()
	before := succeed(t, p, w, 20, 8<<10)
	free := fillFileSystem(w)
	succeed(t, p, w, 20, 16<<10)
	w.kill()
	w.launch(config{})
	w.await("the process takes calls", w.listens)
	succeed(t, p, w, 20, 16<<10)
	free()
	after := succeed(t, p, w, 20, 16<<10)
	w.flush()
	records := w.records(since)
	for c, id := range before {
		c.check(t, records[c.name()], id)
	}
	for c, id := range after {
		c.check(t, records[c.name()], id)
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
