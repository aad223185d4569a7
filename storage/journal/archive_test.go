package journal

import (
	"os"
	"testing"
	"time"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// wantLostContent fails unless so many records are known to have lost their content.
func wantLostContent(t *testing.T, j *Journal, want int64) {
	t.Helper()
	var got int64
	for _, l := range j.Integrity().Losses {
		if l.Reason == storage.LostContent {
			got += l.Count
		}
		if l.Reason == storage.LostContent && (l.Exchanges != 0 || l.From == 0 || l.To < l.From) {
			t.Errorf("the loss is %+v", l)
		}
	}
	if got != want {
		t.Errorf("%d records count as without content, want %d", got, want)
	}
}

// unreadable counts the records whose content does not read.
func unreadable(t *testing.T, j *Journal, refs []storage.ContentRef) (n int64) {
	t.Helper()
	for i, ref := range refs {
		c, err := j.Contents().Content(t.Context(), &storage.Record{ID: numbered(i), Org: "acme", Content: ref})
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			n++
		} else {
			wantContent(t, j, ref, i)
		}
	}
	return n
}

// The records whose content does not read any more are those that count as without
// content, whatever became of a sealed segment, whoever finds it, and over restarts.
func TestContentThatIsGoneCountsOnce(t *testing.T) {
	for name, harm := range map[string]struct {
		do     func(t *testing.T, path string) error
		byRead bool // nobody else finds it
	}{
		"deleted":   {do: func(_ *testing.T, path string) error { return os.Remove(path) }},
		"truncated": {do: func(t *testing.T, path string) error { return os.Truncate(path, size(t, path)/2) }},
		"emptied":   {do: func(_ *testing.T, path string) error { return os.Truncate(path, 0) }},
		"with a damaged block": {byRead: true, do: func(t *testing.T, path string) error {
			flip(t, path, 100)
			return nil
		}},
		"with a damaged index": {byRead: true, do: func(t *testing.T, path string) error {
			flip(t, path, size(t, path)-30)
			return nil
		}},
	} {
		for finder, find := range map[string]func(t *testing.T, j *Journal, o Options, harm func()) *Journal{
			"a read": func(_ *testing.T, j *Journal, _ Options, harm func()) *Journal {
				harm()
				return j
			},
			"maintenance": func(t *testing.T, j *Journal, _ Options, harm func()) *Journal {
				alone(j)
				harm()
				j.maintenance.pass(t.Context())
				return j
			},
			"a start": func(t *testing.T, j *Journal, o Options, harm func()) *Journal {
				b := j.backend
				j.Close(t.Context())
				harm()
				return open(t, b, o)
			},
		} {
			t.Run(name+", found by "+finder, func(t *testing.T) {
				t.Parallel() // it waits for the disk
				b := &backend{}
				o := Options{Dir: t.TempDir()}
				j := open(t, b, o)
				var refs []storage.ContentRef
				for n := range 120 {
					refs = append(refs, appendSample(t, j, n).Content)
					if n%60 == 59 {
						seal(t, j, 1+n/60)
					}
				}
				wantLostContent(t, j, 0)
				j = find(t, j, o, func() {
					if err := harm.do(t, segmentPath(j.dir, refs[0].Segment, sealedSuffix)); err != nil {
						t.Fatal(err)
					}
				})
				if finder != "a read" && !harm.byRead {
					wantLostContent(t, j, 60)
				}
				lost := unreadable(t, j, refs)
				if lost == 0 || lost > 60 {
					t.Fatalf("%d of 120 records have lost their content", lost)
				}
				for range 2 {
					wantLostContent(t, j, lost)
					wantIntegrity(t, j, 120, 120, 0, 0, nil)
					abandon(j)
					j = open(t, b, o)
					unreadable(t, j, refs)
				}
			})
		}
	}
}

func size(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// What stood in a directory that is gone counts when the journal makes it anew, but
// for what the process still has open.
func TestContentOfADirectoryThatIsGoneCounts(t *testing.T) {
	b := &backend{}
	o := Options{Dir: t.TempDir() + "/journal"}
	j := open(t, b, o)
	var refs []storage.ContentRef
	for n := range 4 {
		refs = append(refs, appendSample(t, j, n).Content)
	}
	seal(t, j, 1)
	alone(j)
	refs = append(refs, appendSample(t, j, 4).Content)
	if err := removeDirectory(o.Dir); err != nil {
		t.Fatal(err)
	}
	if err := j.Ready(); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	j.maintenance.pass(t.Context())
	if n := unreadable(t, j, refs); n != 4 {
		t.Errorf("%d records have lost their content, want 4", n)
	}
	wantLostContent(t, j, 4)
	j.Close(t.Context())
	j = open(t, b, o)
	wantLostContent(t, j, 4)
}

// A raw segment that is cut short while it is open has lost the content after the cut.
func TestContentOfARawSegmentThatIsCutShortCounts(t *testing.T) {
	j := open(t, &backend{}, Options{Dir: t.TempDir()})
	var refs []storage.ContentRef
	for n := range 20 {
		refs = append(refs, appendSample(t, j, n).Content)
	}
	flush(t, j)
	path := segmentPath(j.dir, 1, rawSuffix)
	if err := os.Truncate(path, frames(t, path)[12]-1); err != nil {
		t.Fatal(err)
	}
	if n := unreadable(t, j, refs); n != 9 {
		t.Errorf("%d contents are unreadable, want 9", n)
	}
	seal(t, j, 1)
	wantLostContent(t, j, 9)
}

// Content that has outlived its retention is not lost, also where the process ended
// before it could say that.
func TestContentThatIsDeletedByRetentionIsNotLost(t *testing.T) {
	var now clock
	r, body := sample(0)
	now.Store(int64(r.CreatedAt))
	b := &backend{}
	o := Options{Dir: t.TempDir(), ContentRetention: time.Hour, now: now.now}
	j := open(t, b, o)
	if err := j.Append(r, storagetest.Kept(r, body)); err != nil {
		t.Fatal(err)
	}
	seal(t, j, 1)
	abandon(j)
	now.Add(o.ContentRetention.Milliseconds() + 1)
	if err := os.Remove(segmentPath(j.dir, 1, sealedSuffix)); err != nil {
		t.Fatal(err)
	}
	j = open(t, b, o)
	wantLostContent(t, j, 0)
}

// Damage that is found when a segment is sealed at the very end counts after it.
func TestDamageFoundAtTheEndCounts(t *testing.T) {
	b := &backend{}
	o := Options{Dir: t.TempDir()}
	j := open(t, b, o)
	appendSample(t, j, 0)
	appendSample(t, j, 4)
	flush(t, j)
	path := segmentPath(j.dir, 1, rawSuffix)
	flip(t, path, frames(t, path)[2]-1)
	seal(t, j, 1) // nothing is appended after it
	abandon(j)
	j = open(t, b, o)
	wantLostContent(t, j, 1)
}
