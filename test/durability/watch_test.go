//go:build linux

package durability

import (
	"bytes"
	"encoding/binary"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// watcher counts how often files are opened.
type watcher struct {
	mu    sync.Mutex
	opens map[string]int // by base name
}

// watch watches the files of directories until the test ends.
func watch(t *testing.T, dirs ...string) *watcher {
	t.Helper()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_OPEN); err != nil {
			t.Fatalf("%s: %v", dir, err)
		}
	}
	events := os.NewFile(uintptr(fd), "inotify")
	t.Cleanup(func() { events.Close() })
	w := &watcher{opens: map[string]int{}}
	go func() {
		b := make([]byte, 64<<10)
		for {
			n, err := events.Read(b)
			if err != nil {
				return
			}
			w.note(b[:n])
		}
	}()
	return w
}

func (w *watcher) note(events []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(events) >= unix.SizeofInotifyEvent {
		length := binary.NativeEndian.Uint32(events[12:])
		name := events[unix.SizeofInotifyEvent:][:length]
		w.opens[string(bytes.TrimRight(name, "\x00"))]++
		events = events[unix.SizeofInotifyEvent+length:]
	}
}

// count is how often a file was opened.
func (w *watcher) count(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.opens[name]
}

// names are those of the files that were opened.
func (w *watcher) names() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.opens, "") // the directory
	return slices.Sorted(maps.Keys(w.opens))
}
