//go:build linux

package durability

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// harms do something to the directory of the journal while the process runs. What
// they return undoes it, where it does not pass by itself.
var harms = []struct {
	name string
	harm func(dir string) error
	undo func(dir string) error
}{
	{"removed", removeAll, nil},
	{"read-only", mountOver(unix.MS_RDONLY, ""), unmount},
	{"renamed", moveAway, nil},
	{"full", mountOver(0, "size=576k"), unmount},
	{"a file", func(dir string) error {
		if err := removeAll(dir); err != nil {
			return err
		}
		return os.WriteFile(dir, nil, 0o600)
	}, os.Remove},
	{"replaced", func(dir string) error {
		if err := moveAway(dir); err != nil {
			return err
		}
		return os.Mkdir(dir, 0o700)
	}, nil},
}

// removeAll removes a directory in which the process makes files meanwhile.
func removeAll(dir string) (err error) {
	for range 100 {
		if err = os.RemoveAll(dir); !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
	return err
}

func moveAway(dir string) error {
	if err := os.RemoveAll(dir + ".old"); err != nil {
		return err
	}
	return os.Rename(dir, dir+".old")
}

// mountOver hides a directory behind a small file system.
func mountOver(flags uintptr, options string) func(string) error {
	return func(dir string) error { return unix.Mount("tmpfs", dir, "tmpfs", flags, options) }
}

func unmount(dir string) error { return unix.Unmount(dir, unix.MNT_DETACH) }

// Ready is never 200 while records are being lost, whatever becomes of the
// journal's directory, and the reconciliation has every loss after a restart.
func TestDirectoryOfTheJournalGone(t *testing.T) {
	t.Parallel()
	p := newProvider(t)
	w := newWeir(t, p)
	dir := w.database() + ".segments"
	w.start(config{})
	since := time.Now()
	calls := len(succeed(t, p, w, 20, 0))
	unready, uncertain := 0, int64(0)
	lost := func() int64 { // but for the bodies of earlier records, which the harm took
		s := w.status()
		return s.lost() - s.Lost["content"]
	}
	for round := range rounds(2*len(harms), 100) {
		h := harms[round%len(harms)]
		if err := h.harm(dir); os.IsPermission(err) {
			t.Logf("%s: %v", h.name, err)
			continue
		} else if err != nil {
			t.Fatalf("%s: %v", h.name, err)
		}
		asks := round/len(harms)%2 == 0 // else appends must notice
		for range 8 {
			ready := asks && w.ready() == nil
			if asks && !ready {
				unready++
			}
			before := lost()
			calls += len(succeed(t, p, w, 1, 8<<10))
			if n := lost() - before; ready && n > 0 {
				t.Errorf("%s: ready, and %d entries were lost", h.name, n)
			}
		}
		if h.undo != nil {
			if err := h.undo(dir); err != nil {
				t.Fatalf("%s: %v", h.name, err)
			}
			w.await("the journal can be written again", func() bool { return w.ready() == nil })
			calls += len(succeed(t, p, w, 4, 0))
		}
		killed := round%4 == 1
		switch round % 4 {
		case 1:
			w.kill()
			w.start(config{})
		case 3:
			w.terminate()
			w.wait()
			w.start(config{})
		}
		b := w.settled()
		if b.Seen != int64(calls) || b.Recorded+b.Lost != b.Seen {
			t.Fatalf("%s: after %d calls the reconciliation is %+v", h.name, calls, b)
		}
		w.flush()
		// What was drained from a deleted file in the instant of the kill is recorded, and
		// counts as interrupted: nothing tells of it but the record.
		if n := int64(len(w.records(since))); n < b.Recorded || n > b.Recorded+uncertain && !killed {
			t.Fatalf("%s: there are %d records, the reconciliation is %+v", h.name, n, b)
		} else {
			uncertain = n - b.Recorded
		}
	}
	if unready == 0 {
		t.Error("the journal was ready throughout")
	}
}
