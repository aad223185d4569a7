package sqlite

import (
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirhq/weir/storage"
)

// What keeps the database locked makes it unavailable, which readers learn at once,
// long before SQLite gives up.
func TestLockedReads(t *testing.T) {
	t.Parallel()
	b := newBackend(t)
	first := newTraffic(1).batch(1)
	write(t, b, first)
	r := first.Records[0]
	has(t, b, r)
	// The locks of a write-ahead log are bytes 120 to 127 of its index: all of them
	// are taken, as by a process that repairs it (https://sqlite.org/walformat.html).
	index, err := os.OpenFile(b.path+"-shm", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer index.Close()
	lock := func(kind int16) {
		t.Helper()
		// A reader may still have its lock, for which the repair waits, too.
		if err := unix.FcntlFlock(index.Fd(), unix.F_OFD_SETLKW, &unix.Flock_t{Type: kind, Start: 120, Len: 8}); err != nil {
			t.Fatal(err)
		}
	}
	lock(unix.F_WRLCK)
	start := time.Now()
	var reads sync.WaitGroup
	for range 3 * maxReaders {
		reads.Go(func() {
			if _, err := b.Request(t.Context(), r.Key()); !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("Request = %v of a locked database, want ErrUnavailable", err)
			}
		})
	}
	reads.Wait()
	if _, err := b.Request(t.Context(), r.Key()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("Request = %v of a locked database, want ErrUnavailable", err)
	}
	if took := time.Since(start); took > 9*time.Second {
		t.Errorf("%d reads took %v to see that the database is locked", 3*maxReaders, took)
	}
	lock(unix.F_UNLCK)
	for b.readers.stuck.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	has(t, b, r)
}
