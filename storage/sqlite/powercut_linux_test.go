package sqlite

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/storage"
)

// unflushed is the number of kilobytes of a file that a power cut would take.
func unflushed(t *testing.T, path string) (kilobytes int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mapped)
	maps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip(err)
	}
	_, of, found := strings.Cut(string(maps), " "+path+"\n")
	if !found {
		t.Skip("the mapping is not listed")
	}
	for line := range strings.Lines(of) {
		switch words := strings.Fields(line); words[0] {
		case "Shared_Dirty:", "Private_Dirty:":
			n, err := strconv.Atoi(words[1])
			if err != nil {
				t.Fatal(err)
			}
			kilobytes += n
		case "VmFlags:":
			return kilobytes
		}
	}
	return kilobytes
}

// TestSegmentsEndOnDisk holds that nothing which is written until a segment ends is
// lost with power: the journal deletes the segment then.
func TestSegmentsEndOnDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	b := New(path)
	if _, err := b.Open(t.Context(), hostOf(noContents{})); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	write := func(end storage.Position) {
		t.Helper()
		r := &storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: 1}
		if err := b.Write(t.Context(), &storage.Batch{Records: []*storage.Record{r}, End: end}); err != nil {
			t.Fatal(err)
		}
	}
	log := path + "-wal"
	write(storage.Position{Segment: 1, Ordinal: 1})
	write(storage.Position{Segment: 1, Ordinal: 2})
	if unflushed(t, log) == 0 {
		t.Skip("the kernel does not tell, or is quick")
	}
	write(storage.Position{Segment: 2})
	if n := unflushed(t, log); n != 0 {
		f, err := os.OpenFile(log, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if f.Sync() == nil && unflushed(t, log) > 0 {
			t.Skip("this file system has no disk")
		}
		t.Errorf("%d KB of the log are in memory alone", n)
	}
}
