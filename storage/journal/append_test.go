package journal

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// faults makes the files of a journal fail.
type faults struct {
	room     atomic.Int64 // bytes that a file may have, when limited
	limited  atomic.Bool
	truncate atomic.Bool // fails too
	sync     atomic.Bool // fails
	syncs    atomic.Int64
}

type faultyFile struct {
	file
	f *faults
}

func (f *faults) open(path string, flag int) (file, error) {
	inner, err := openFile(path, flag)
	return faultyFile{inner, f}, err
}

// write writes what there is room for and fails, as a full disk does.
func (f faultyFile) write(pieces [][]byte, off int64) error {
	if !f.f.limited.Load() {
		return f.file.write(pieces, off)
	}
	room := f.f.room.Load() - off
	for _, p := range pieces {
		n := min(int64(len(p)), max(room, 0))
		if err := f.file.write([][]byte{p[:n]}, off); err != nil {
			return err
		}
		off, room = off+n, room-n
		if n < int64(len(p)) {
			return syscall.ENOSPC
		}
	}
	return nil
}

func (f faultyFile) Truncate(size int64) error {
	if f.f.truncate.Load() {
		return syscall.EIO
	}
	return f.file.Truncate(size)
}

func (f faultyFile) sync() error {
	f.f.syncs.Add(1)
	if f.f.sync.Load() {
		return syscall.EIO
	}
	return f.file.sync()
}

func TestConcurrentAppends(t *testing.T) {
	for _, sync := range []bool{false, true} {
		b := &backend{}
		dir := t.TempDir()
		j := open(t, b, Options{Dir: dir, Sync: sync, SegmentBytes: 64 << 10})
		refs := appendConcurrently(t, j, 8, 50)
		flush(t, j)
		if got := len(b.ids()); got != 400 {
			t.Fatalf("the backend has %d records, want 400", got)
		}
		for n, ref := range refs {
			wantContent(t, j, ref, n)
		}
		j.Close(t.Context())
	}
}

// appendConcurrently appends n records in each of some goroutines, and returns
// where their content is.
func appendConcurrently(t *testing.T, j *Journal, goroutines, n int) []storage.ContentRef {
	refs := make([]storage.ContentRef, goroutines*n)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range n {
				r, c := sample(g*n + i)
				if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
					t.Error(err)
				}
				clear(c.Request.Data) // the journal must not need it any more
				clear(c.Response.Data)
				refs[g*n+i] = r.Content
			}
		})
	}
	wg.Wait()
	return refs
}

func TestFullDisk(t *testing.T) {
	for name, truncate := range map[string]bool{"truncate": false, "abandon": true} {
		t.Run(name, func(t *testing.T) {
			var f faults
			f.truncate.Store(truncate)
			b := &backend{}
			dir := t.TempDir()
			j := open(t, b, Options{Dir: dir, open: f.open})
			appendSample(t, j, 0)
			f.room.Store(int64(headerSize) + 1000)
			f.limited.Store(true)
			lost := 0
			for n := 1; n < 10; n++ {
				r, c := sample(4*n + 2)
				if err := j.Append(r, storagetest.Kept(r, c)); err == nil {
					t.Fatal("an append beyond the disk's end succeeds")
				} else if !errors.Is(err, syscall.ENOSPC) {
					t.Fatal(err)
				}
				if r.Content != (storage.ContentRef{}) {
					t.Fatal("a lost record refers to content")
				}
				lost++
			}
			f.limited.Store(false)
			last := appendSample(t, j, 100)
			flush(t, j)
			if got := settled(j, storage.LostJournalFailed); got != int64(lost) {
				t.Errorf("%d losses in the backend, want %d", got, lost)
			}
			if got := j.Status().Lost[storage.LostJournalFailed]; got != int64(lost) {
				t.Errorf("%d losses in the status, want %d", got, lost)
			}
			wantContent(t, j, last.Content, 100)
			if got := len(b.ids()); got != 2 {
				t.Errorf("%d records in the backend, want 2", got)
			}
			if s := j.Status(); s.PendingBytes != 0 {
				t.Errorf("%d bytes are pending", s.PendingBytes)
			}

			// What could not be written is nowhere, also for the next process.
			j.Close(t.Context())
			again := &backend{}
			j = open(t, again, Options{Dir: dir})
			flush(t, j)
			if got := len(again.ids()); got > 2 {
				t.Errorf("%d records are replayed, want at most 2", got)
			}
		})
	}
}

func TestLossesSurviveARestart(t *testing.T) {
	var f faults
	b := &backend{}
	dir := t.TempDir()
	j := open(t, b, Options{Dir: dir, open: f.open})
	f.limited.Store(true)
	r, c := sample(0)
	if err := j.Append(r, storagetest.Kept(r, c)); err == nil {
		t.Fatal("an append to a full disk succeeds")
	}
	f.limited.Store(false)
	unblock := b.block()
	defer unblock()
	appendSample(t, j, 1)
	abandon(j)
	unblock()
	j = open(t, b, Options{Dir: dir})
	flush(t, j)
	if got := settled(j, storage.LostJournalFailed); got != 1 {
		t.Errorf("%d losses in the backend, want 1", got)
	}
}

// What could neither be flushed nor be taken back is lost, and stays lost when the
// next process finds it whole.
func TestAnEntryIsNotLostAndRecorded(t *testing.T) {
	for name, again := range map[string]bool{"once": false, "twice": true} {
		t.Run(name, func(t *testing.T) {
			var f faults
			b := &backend{}
			o := Options{Dir: t.TempDir(), Sync: true, open: f.open}
			j := open(t, b, o)
			unblock := b.block()
			defer unblock()
			appendSample(t, j, 0)
			f.truncate.Store(true)
			f.sync.Store(true)
			lost := []*storage.Record{begin(j, 1)}
			if again { // also what should say that the first is lost
				lost = append(lost, begin(j, 2))
			}
			for _, r := range lost {
				if err := j.Append(r, nil); !errors.Is(err, syscall.EIO) {
					t.Fatal(err)
				}
			}
			f.sync.Store(false)
			appendSample(t, j, 3)
			n := int64(len(lost))
			wantIntegrity(t, j, 2+n, 0, 2, 0, map[string]int64{storage.LostJournalFailed: n})
			abandon(j)
			unblock()
			for range 2 {
				j = open(t, b, o)
				flush(t, j)
				wantIntegrity(t, j, 2+n, 2, 0, 0, map[string]int64{storage.LostJournalFailed: n})
				if got := len(b.ids()); got != 2 {
					t.Errorf("the backend has %d records, want 2", got)
				}
				abandon(j)
			}
		})
	}
}

func TestFailedSyncAbandonsTheSegment(t *testing.T) {
	var f faults
	b := &backend{}
	dir := t.TempDir()
	j := open(t, b, Options{Dir: dir, Sync: true, open: f.open})
	appendSample(t, j, 0)
	if f.syncs.Load() == 0 {
		t.Fatal("Sync does not flush")
	}
	f.sync.Store(true)
	r, c := sample(1)
	if err := j.Append(r, storagetest.Kept(r, c)); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	f.sync.Store(false)
	r = appendSample(t, j, 2)
	flush(t, j)
	if r.Content.Segment != 2 {
		t.Errorf("the next record stands at %v, want segment 2", r.Content)
	}
	if got := len(b.ids()); got != 2 {
		t.Errorf("%d records in the backend, want 2", got)
	}
}

func TestFullJournal(t *testing.T) {
	b := &backend{}
	unblock := b.block()
	defer unblock()
	j := open(t, b, Options{Dir: t.TempDir(), MaxBytes: 20 << 10})
	kept, lost := 0, 0
	for n := range 200 {
		r, c := sample(4 * n)
		switch err := j.Append(r, storagetest.Kept(r, c)); {
		case err == nil:
			kept++
		case errors.Is(err, ErrFull):
			lost++
		default:
			t.Fatal(err)
		}
	}
	if kept == 0 || lost == 0 || j.Status().PendingBytes > 20<<10 {
		t.Fatalf("%d kept, %d lost, status %+v", kept, lost, j.Status())
	}
	unblock()
	eventually(t, "the losses are in the backend without another append", func() bool {
		return settled(j, storage.LostJournalFull) == int64(lost)
	})
	if got := len(b.ids()); got != kept {
		t.Errorf("%d records in the backend, want %d", got, kept)
	}
	appendSample(t, j, 1000)
	flush(t, j)
	if got := j.Status().PendingBytes; got != 0 {
		t.Errorf("%d bytes are pending", got)
	}
}

func TestTooLargeMetadata(t *testing.T) {
	j := open(t, &backend{}, Options{Dir: t.TempDir()})
	r, _ := sample(0)
	r.UserID = string(make([]byte, maxMetadata))
	if err := j.Append(r, nil); !errors.Is(err, errSize) {
		t.Fatal(err)
	}
	appendSample(t, j, 1)
	flush(t, j)
}

func TestManyPieces(t *testing.T) {
	path := t.TempDir() + "/f"
	f, err := openFile(path, os.O_CREATE|os.O_RDWR)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var want []byte
	pieces := make([][]byte, 5000)
	for i := range pieces {
		pieces[i] = make([]byte, i%3)
		for k := range pieces[i] {
			pieces[i][k] = byte(i)
		}
		want = append(want, pieces[i]...)
	}
	if err := f.write(pieces, 3); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(want))
	if _, err := f.ReadAt(got, 3); err != nil && !errors.Is(err, io.EOF) || string(got) != string(want) {
		t.Fatal("the pieces do not read as they were written", err)
	}
}

func TestReconfigure(t *testing.T) {
	b := &backend{}
	unblock := b.block()
	defer unblock()
	j := open(t, b, Options{Dir: t.TempDir(), MaxBytes: 1})
	r, c := sample(0)
	if err := j.Append(r, storagetest.Kept(r, c)); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	j.Reconfigure(Options{})
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		t.Fatal(err)
	}
	unblock()
	if err := j.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// A disk that becomes read-only in the middle keeps the file that was begun.
func TestFileThatStaysBehind(t *testing.T) {
	var f faults
	f.limited.Store(true)
	j := open(t, &backend{}, Options{Dir: t.TempDir(), open: func(path string, flag int) (file, error) {
		opened, err := f.open(path, flag)
		if err == nil && f.limited.Load() {
			err = errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "not empty"), 0o700)) // which nobody can remove
		}
		return opened, err
	}})
	r, c := sample(0)
	if err := j.Append(r, storagetest.Kept(r, c)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	f.limited.Store(false)
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		t.Errorf("the disk can be written again, but: %v", err)
	}
}
