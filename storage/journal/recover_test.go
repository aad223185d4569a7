package journal

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// frames lists where the entries of a raw file begin and end.
func frames(t *testing.T, path string) (ends []int64) {
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
	salt, err := readHeader(f)
	if err != nil {
		t.Fatal(err)
	}
	sc := &scanner{r: f, salt: salt, off: int64(headerSize), end: info.Size(), size: scanWindow}
	ends = []int64{sc.off}
	for {
		if _, err := sc.next(); err != nil {
			return ends
		}
		ends = append(ends, sc.off)
	}
}

// undrained returns a file with entries that no backend has.
func undrained(t *testing.T, n int) []byte {
	t.Helper()
	b := &backend{}
	unblock := b.block()
	defer unblock()
	dir := t.TempDir()
	j := open(t, b, Options{Dir: dir})
	for i := range n {
		appendSample(t, j, i)
	}
	abandon(j)
	data, err := os.ReadFile(files(t, dir, rawSuffix)[0])
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// writeSegment makes the directory of a journal with one segment. The directory is in memory
// where the system has such a file system: ext4 seeks long for an inode while thousands have
// just been freed, as by a test that opens a journal for each byte.
func writeSegment(t *testing.T, data []byte) (dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "journal")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "0000000001.raw"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTornTail(t *testing.T) {
	const n = 5 // the last two have no large bodies
	data := undrained(t, n)
	ends := frames(t, filepath.Join(writeSegment(t, data), "0000000001.raw"))
	if len(ends) != n+1 || ends[n] != int64(len(data)) {
		t.Fatalf("%d entries end at %v of %d", len(ends)-1, ends, len(data))
	}
	for cut := ends[n-2]; cut <= ends[n]; cut++ {
		whole, _ := slices.BinarySearch(ends, cut+1)
		whole--
		b := &backend{}
		dir := writeSegment(t, data[:cut])
		j := open(t, b, Options{Dir: dir})
		r := appendSample(t, j, 100)
		flush(t, j)
		want := whole + 1
		if got := b.ids(); len(got) != want || got[whole] != numbered(100) {
			t.Fatalf("cut at %d: the backend has %d records, want %d", cut, len(got), want)
		}
		for i, id := range b.ids()[:whole] {
			if id != numbered(i) {
				t.Fatalf("cut at %d: record %d is %v", cut, i, id)
			}
		}
		if losses := settledLosses(j); losses != nil {
			t.Fatalf("cut at %d: losses %v", cut, losses)
		}
		wantContent(t, j, r.Content, 100)
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHeaderCutShort(t *testing.T) {
	for cut := range headerSize {
		b := &backend{}
		j := open(t, b, Options{Dir: writeSegment(t, header(7)[:cut])})
		appendSample(t, j, 0)
		flush(t, j)
		if len(b.ids()) != 1 {
			t.Fatalf("cut at %d: %d records", cut, len(b.ids()))
		}
		j.Close(t.Context())
	}
}

func (j *Journal) cursorAt() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.delivery.position.Segment
}

func TestDamageWhileOpen(t *testing.T) {
	for _, victim := range []int{0, 2, 4} {
		b := &backend{}
		unblock := b.block()
		dir := t.TempDir()
		j := open(t, b, Options{Dir: dir})
		appendSample(t, j, 99) // the drain is held up with it
		eventually(t, "the drain waits", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.tried) > 0 })
		var want []storage.ContentRef
		for n := range 5 {
			want = append(want, appendSample(t, j, n).Content)
		}
		path := files(t, dir, rawSuffix)[0]
		flip(t, path, frames(t, path)[victim+1]+headSize+5)
		unblock()
		flush(t, j)
		if got := len(b.ids()); got != 5 {
			t.Errorf("the backend has %d records, want 5", got)
		}
		if got := settled(j, storage.LostCorrupt); got != 1 {
			t.Errorf("%d losses, want 1", got)
		}
		appendSample(t, j, 7)
		flush(t, j)
		if s := j.Status(); s.PendingRecords != 0 || s.PendingBytes != 0 || s.Lost[storage.LostCorrupt] != 1 {
			t.Errorf("status is %+v", s)
		}
		for n, ref := range want {
			if n != victim {
				wantContent(t, j, ref, n)
			}
		}
		j.Close(t.Context())
	}
}

func flip(t *testing.T, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0xff
	if _, err := f.WriteAt(b[:], at); err != nil {
		t.Fatal(err)
	}
}

func TestReplayIsIdempotent(t *testing.T) {
	dir := t.TempDir()
	b := &backend{}
	for round := range 5 {
		j := open(t, b, Options{Dir: dir, SegmentBytes: 4 << 10})
		for n := range 10 {
			appendSample(t, j, 10*round+n)
		}
		if round%2 == 0 {
			flush(t, j)
		}
		abandon(j)
	}
	j := open(t, b, Options{Dir: dir})
	flush(t, j)
	got := b.ids()
	slices.SortFunc(got, func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) })
	if len(got) != 50 || len(slices.Compact(got)) != 50 {
		t.Errorf("%d records arrive, want each of 50 once", len(b.ids()))
	}
}

func TestForeignFiles(t *testing.T) {
	later := header(7)
	later[len(magic)]++
	_, err := Open(t.Context(), &backend{}, Options{Dir: writeSegment(t, later)})
	if !errors.Is(err, errVersion) {
		t.Errorf("a segment of a later version: %v", err)
	}
	dir := writeSegment(t, []byte("this is no segment, but it has its name"))
	damaged := []string{"0000000002.raw", "0000000003.blk", "notes.txt"}
	for _, name := range damaged {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, 100), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	r := appendSample(t, j, 0)
	flush(t, j)
	wantContent(t, j, r.Content, 0)
	if got := settled(j, storage.LostCorrupt); got != 2 {
		t.Errorf("%d losses, want one for each raw file", got)
	}
	if c, err := j.Contents().Content(t.Context(), &storage.Record{Content: storage.ContentRef{Segment: 3}}); c != nil || err != nil {
		t.Errorf("content of a damaged file is %v, %v", c, err)
	}
}

// Damage that begins where the backend stopped counts as any other.
func TestDamageBehindThePosition(t *testing.T) {
	for name, after := range map[string]int{"before others": 2, "at the end": 0} {
		t.Run(name, func(t *testing.T) {
			b := &backend{}
			dir := t.TempDir()
			j := open(t, b, Options{Dir: dir})
			appendSample(t, j, 0)
			flush(t, j)
			unblock := b.block()
			appendSample(t, j, 1)
			for n := range after {
				appendSample(t, j, 2+n)
			}
			path := files(t, dir, rawSuffix)[0]
			abandon(j)
			unblock()
			flip(t, path, frames(t, path)[1]+headSize+5)
			j = open(t, b, Options{Dir: dir})
			flush(t, j)
			eventually(t, "the segment is read to its end", func() bool { return j.Status().PendingBytes == 0 && j.cursorAt() > 1 })
			appendSample(t, j, 7)
			flush(t, j)
			if got := settled(j, storage.LostCorrupt); got != 1 {
				t.Errorf("%d losses, want 1", got)
			}
			wantIntegrity(t, j, int64(3+after), int64(2+after), 0, 0, map[string]int64{storage.LostCorrupt: 1})
		})
	}
}
