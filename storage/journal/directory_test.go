package journal

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// harms are what may happen to the directory of an open journal.
var harms = map[string]func(dir string) error{
	"removed": removeDirectory,
	"renamed": func(dir string) error { return os.Rename(dir, dir+".old") },
	"replaced": func(dir string) error {
		if err := os.Rename(dir, dir+".old"); err != nil {
			return err
		}
		return os.MkdirAll(dir, 0o700) // unless the journal was faster
	},
	"emptied": func(dir string) error {
		names, err := filepath.Glob(filepath.Join(dir, "*"))
		for _, name := range names {
			err = os.Remove(name)
		}
		return err
	},
	"without a segment":    func(dir string) error { return removeAll(dir, rawSuffix) },
	"without a count":      func(dir string) error { return os.Remove(filepath.Join(dir, counterName)) },
	"without a checkpoint": func(dir string) error { return os.Remove(filepath.Join(dir, CheckpointName)) },
}

// removeDirectory removes a directory at once: while its files go one by one, the journal
// would make others.
func removeDirectory(dir string) error {
	removed := dir + ".removed"
	if err := os.Rename(dir, removed); err != nil {
		return err
	}
	return os.RemoveAll(removed)
}

func removeAll(dir, suffix string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*"+suffix))
	for _, name := range names {
		err = os.Remove(name)
	}
	return err
}

// Whatever becomes of the directory, a journal that says it is ready loses nothing
// of what it takes afterwards, and the next process knows of every exchange.
func TestAJournalWhoseDirectoryIsGoneMakesItAnew(t *testing.T) {
	for name, harm := range harms {
		for end, stop := range map[string]func(*Journal){
			"closed": func(j *Journal) { j.Close(t.Context()) },
			"killed": abandon,
		} {
			t.Run(name+", "+end, func(t *testing.T) {
				b := &backend{}
				o := Options{Dir: filepath.Join(t.TempDir(), "journal")}
				j := open(t, b, o)
				appendSample(t, j, 0)
				flush(t, j)
				unblock := b.block()
				defer unblock()
				appendSample(t, j, 1)
				if err := harm(o.Dir); err != nil {
					t.Fatal(err)
				}
				if err := j.Ready(); err != nil {
					t.Fatalf("the journal is not ready: %v", err)
				}
				last := appendSample(t, j, 2)
				flying := begin(j, 3)
				unblock()
				flush(t, j)
				stop(j)
				if flying.Number == 0 {
					t.Fatal("the exchange has no number")
				}

				j = open(t, b, o)
				flush(t, j)
				wantContent(t, j, last.Content, 2)
				wantIntegrity(t, j, 4, 3, 0, 0, map[string]int64{storage.LostInterrupted: 1})
			})
		}
	}
}

// An append notices by itself, and what the backend had not taken before a crash
// is declared lost after it.
func TestTheNextProcessKnowsWhatADeletedDirectoryTookAlong(t *testing.T) {
	b := &backend{}
	o := Options{Dir: filepath.Join(t.TempDir(), "journal")}
	j := open(t, b, o)
	appendSample(t, j, 0)
	flush(t, j)
	unblock := b.block()
	defer unblock()
	appendSample(t, j, 1)
	appendSample(t, j, 2)
	if err := removeDirectory(o.Dir); err != nil {
		t.Fatal(err)
	}
	j.log.turn.Lock()
	j.log.checkedAt = j.log.checkedAt.Add(-checkEvery)
	j.log.turn.Unlock()
	appendSample(t, j, 3)
	abandon(j)
	unblock()

	j = open(t, b, o)
	flush(t, j)
	// The checkpoint knew of the first, and perhaps of the second.
	if i := balanced(t, j); i.Seen != 4 || i.Recorded != 2 || i.Lost() != 2 {
		t.Errorf("the reconciliation is %+v", i)
	}
}

// replaceByFile removes the directory of a journal that is open, and writes a file there.
func replaceByFile(t *testing.T, dir string) {
	t.Helper()
	for replaced := false; !replaced; { // maintenance may make the directory again in between
		if err := removeDirectory(dir); err != nil {
			t.Fatal(err)
		}
		err := os.WriteFile(dir, nil, 0o600)
		if err != nil && !errors.Is(err, syscall.EISDIR) {
			t.Fatal(err)
		}
		replaced = err == nil
	}
}

// What is lost while the directory cannot be made is known after a restart, why it is lost
// too.
func TestLossesWithoutADirectorySurviveARestart(t *testing.T) {
	for end, stop := range map[string]func(*Journal){
		"closed": func(j *Journal) { j.Close(t.Context()) },
		"killed": abandon,
	} {
		t.Run(end, func(t *testing.T) {
			b := &backend{}
			o := Options{Dir: filepath.Join(t.TempDir(), "journal")}
			j := open(t, b, o)
			appendSample(t, j, 0)
			flush(t, j)
			replaceByFile(t, o.Dir)
			if j.Ready() == nil {
				t.Fatal("a journal without a directory is ready")
			}
			for n := range 20 {
				if j.Append(begin(j, 1+n), nil) == nil {
					t.Fatal("a record without a directory is not lost")
				}
			}
			stop(j)
			if err := os.Remove(o.Dir); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				j = open(t, b, o)
				wantIntegrity(t, j, 21, 1, 0, 0, map[string]int64{storage.LostJournalFailed: 20})
				abandon(j)
			}
			if _, err := os.Stat(spareDir(o.Dir)); err == nil {
				t.Error("the spare directory stays behind")
			}
		})
	}
}

// While the directory cannot be made, what is appended is lost and counted, and
// the journal is not ready.
func TestAJournalWithoutADirectoryIsNotReady(t *testing.T) {
	b := &backend{}
	o := Options{Dir: filepath.Join(t.TempDir(), "journal")}
	j := open(t, b, o)
	appendSample(t, j, 0)
	flush(t, j)
	replaceByFile(t, o.Dir)
	for n := 1; n < 4; n++ {
		if err := j.Ready(); err == nil || !strings.Contains(err.Error(), o.Dir) {
			t.Errorf("a journal whose directory is a file says %v", err)
		}
		r := begin(j, n)
		if j.Append(r, nil) == nil {
			t.Error("a record without a directory is not lost")
		}
	}
	wantIntegrity(t, j, 4, 1, 0, 0, map[string]int64{storage.LostJournalFailed: 3})
	if err := os.Remove(o.Dir); err != nil {
		t.Fatal(err)
	}
	if err := j.Ready(); err != nil {
		t.Error(err)
	}
	appendSample(t, j, 4)
	flush(t, j)
	abandon(j)
	j = open(t, b, o)
	wantIntegrity(t, j, 5, 2, 0, 0, map[string]int64{storage.LostJournalFailed: 3})
}

// The directory of another journal, which came in place of the first, stays as it is.
func TestAJournalLeavesTheDirectoryOfAnotherAlone(t *testing.T) {
	parent := t.TempDir()
	o := Options{Dir: filepath.Join(parent, "journal")}
	b := new(backend)
	other := open(t, b, Options{Dir: filepath.Join(parent, "other")})
	appendSample(t, other, 0)
	flush(t, other)
	identity := other.identity
	other.Close(t.Context())

	j := open(t, &backend{}, o)
	if err := os.Rename(o.Dir, o.Dir+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(parent, "other"), o.Dir); err != nil {
		t.Fatal(err)
	}
	if err := j.Ready(); err == nil || !strings.Contains(err.Error(), "another journal") {
		t.Errorf("a journal in the place of another says %v", err)
	}
	j.Close(t.Context())
	j = open(t, b, o)
	flush(t, j)
	wantIntegrity(t, j, 1, 1, 0, 0, nil)
	if j.identity != identity {
		t.Error("the other journal has lost its identity")
	}
}

// Room for a small file is no room for a record as large as others were.
func TestReadyTakesAsMuchRoomAsTheLargestRecord(t *testing.T) {
	var f faults
	j := open(t, &backend{}, Options{Dir: t.TempDir(), open: f.open})
	appendSample(t, j, 0)
	r, c := sample(1)
	c.Response.Data = slices.Repeat([]byte("x"), 128<<10)
	f.room.Store(100 << 10)
	f.limited.Store(true)
	if err := j.Append(r, storagetest.Kept(r, c)); err == nil {
		t.Fatal("an append beyond the disk's end succeeds")
	}
	if err := j.Ready(); err == nil {
		t.Error("ready, without room for what was lost")
	}
	f.room.Store(1 << 20)
	if err := j.Ready(); err != nil {
		t.Error(err)
	}
	if names := files(t, j.dir, temporarySuffix); len(names) > 0 {
		t.Errorf("%s stay behind", names)
	}
}

func TestAJournalThatIsFullIsNotReady(t *testing.T) {
	b := &backend{}
	j := open(t, b, Options{Dir: t.TempDir(), MaxBytes: 4 << 10})
	unblock := b.block()
	for n := 0; ; n++ {
		r, c := sample(n)
		if j.Append(r, storagetest.Kept(r, c)) != nil {
			break
		}
	}
	if j.Ready() == nil {
		t.Error("a journal that is full is ready")
	}
	unblock()
	flush(t, j)
	if err := j.Ready(); err != nil {
		t.Error(err)
	}
	j.Close(t.Context())
	if j.Ready() == nil {
		t.Error("a journal that is closed is ready")
	}
}

func TestADirectoryThatCannotBeWrittenIsNotReady(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir})
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	if err := j.Ready(); err == nil {
		t.Errorf("a directory that is read-only is ready")
	}
}
