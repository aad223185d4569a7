package journal

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirhq/weir/storage"
)

// seal has everything sealed that can be.
func seal(t *testing.T, j *Journal, segments int) {
	t.Helper()
	flush(t, j)
	j.turn.Lock()
	if j.active != nil {
		j.close(j.active)
	}
	j.turn.Unlock()
	eventually(t, "the segments are sealed", func() bool {
		signal(j.tidy)
		s := j.Status()
		return s.RawSegments == 0 && s.SealedSegments == segments
	})
}

func TestSealedContentReadsAsRaw(t *testing.T) {
	dir := t.TempDir()
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	var refs []storage.ContentRef
	for n := range 200 {
		r := appendSample(t, j, n)
		refs = append(refs, r.Content)
		if n%10 == 0 {
			if err := j.AppendFact(&storage.Fact{Org: "acme", RequestID: r.ID, At: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	raw := j.Status().RawBytes
	for n, ref := range refs {
		wantContent(t, j, ref, n)
	}
	seal(t, j, 1)
	if s := j.Status(); s.SealedBytes == 0 || s.SealedBytes > raw/3 {
		t.Errorf("%d raw bytes became %d", raw, s.SealedBytes)
	}
	check := func(j *Journal) {
		for n, ref := range refs {
			wantContent(t, j, ref, n)
		}
		for _, ref := range []storage.ContentRef{{}, {Segment: 1, Ordinal: 1}, {Segment: 1, Ordinal: 1e6}, {Segment: 77}} {
			if c, err := j.Content(t.Context(), ref); c != nil || err != nil {
				t.Errorf("content of %v is %v, %v", ref, c, err)
			}
		}
	}
	check(j)
	j.blocks.rest()
	j.blocks.rest()
	check(j)
	j.Close(t.Context())
	check(open(t, b, Options{Dir: dir}))
}

func TestContentWhileSealing(t *testing.T) {
	j := open(t, &backend{}, Options{Dir: t.TempDir(), SegmentBytes: 8 << 10})
	var wg sync.WaitGroup
	var latest atomic.Int64
	var mu sync.Mutex
	refs := map[int]storage.ContentRef{}
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if k := int(latest.Load()); k > 0 {
					mu.Lock()
					ref := refs[n%k]
					mu.Unlock()
					wantContent(t, j, ref, n%k)
				}
			}
		})
	}
	for n := range 300 {
		r := appendSample(t, j, n)
		mu.Lock()
		refs[n] = r.Content
		mu.Unlock()
		latest.Store(int64(n + 1))
	}
	flush(t, j)
	eventually(t, "all but the active segment are sealed", func() bool { return j.Status().RawSegments <= 1 })
	cancel()
	wg.Wait()
}

func TestSupersededContentIsNotSealed(t *testing.T) {
	j := open(t, &backend{}, Options{Dir: t.TempDir()})
	first, _ := sample(0)
	_, c := sample(1)
	if err := j.Append(first, c); err != nil {
		t.Fatal(err)
	}
	old := first.Content
	last := appendSample(t, j, 0)
	kept := appendSample(t, j, 4)
	amended := *kept
	amended.Finish = "stop"
	if err := j.Append(&amended, nil); err != nil {
		t.Fatal(err)
	}
	seal(t, j, 1)
	if c, err := j.Content(t.Context(), old); c != nil || err != nil {
		t.Errorf("superseded content is %+v, %v", c, err)
	}
	wantContent(t, j, last.Content, 0)
	wantContent(t, j, amended.Content, 4)
}

func TestSegmentWithoutContentLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir})
	for n := range 10 {
		r, _ := sample(n)
		if err := j.Append(r, nil); err != nil {
			t.Fatal(err)
		}
	}
	seal(t, j, 0)
	if left := append(files(t, dir, rawSuffix), files(t, dir, sealedSuffix)...); left != nil {
		t.Errorf("left are %v", left)
	}
	appendSample(t, j, 11)
	seal(t, j, 1)
}

func TestCrashWhileSealing(t *testing.T) {
	dir := t.TempDir()
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	r := appendSample(t, j, 0)
	flush(t, j)
	raw, err := os.ReadFile(j.path(1, rawSuffix))
	if err != nil {
		t.Fatal(err)
	}
	seal(t, j, 1)
	sealed, err := os.ReadFile(j.path(1, sealedSuffix))
	if err != nil {
		t.Fatal(err)
	}
	j.Close(t.Context())
	type state map[string][]byte
	states := map[string]state{
		"renamed":  {rawSuffix: raw, sealedSuffix: sealed},
		"unlinked": {sealedSuffix: sealed},
	}
	for cut := range sealed {
		states["written to "+string(rune('0'+cut%10))] = state{rawSuffix: raw, sealedSuffix + temporarySuffix: sealed[:cut]}
	}
	for name, s := range states {
		clear := append(files(t, dir, rawSuffix), append(files(t, dir, sealedSuffix), files(t, dir, temporarySuffix)...)...)
		for _, path := range clear {
			os.Remove(path)
		}
		for suffix, data := range s {
			if err := os.WriteFile(filepath.Join(dir, "0000000001"+suffix), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(name, func(t *testing.T) {
			j := open(t, b, Options{Dir: dir})
			wantContent(t, j, r.Content, 0)
			seal(t, j, 1)
			wantContent(t, j, r.Content, 0)
			if left := files(t, dir, temporarySuffix); left != nil {
				t.Errorf("left are %v", left)
			}
			j.Close(t.Context())
		})
	}
	if got := len(b.ids()); got != 1 {
		t.Errorf("the record reached the backend %d times", got)
	}
}

func TestDamagedContent(t *testing.T) {
	dir := t.TempDir()
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	good, bad := appendSample(t, j, 0), appendSample(t, j, 4)
	flush(t, j)
	path := j.path(1, rawSuffix)
	flip(t, path, frames(t, path)[2]-1)
	if c, err := j.Content(t.Context(), bad.Content); err == nil {
		t.Errorf("damaged content reads as %+v", c)
	}
	wantContent(t, j, good.Content, 0)
	seal(t, j, 1)
	wantContent(t, j, good.Content, 0)
	if c, err := j.Content(t.Context(), bad.Content); c != nil || err != nil {
		t.Errorf("content that could not be sealed is %+v, %v", c, err)
	}
	appendSample(t, j, 8)
	flush(t, j)
	if got := b.lossOf(storage.LostCorrupt); got != 1 {
		t.Errorf("%d losses in the backend, want 1", got)
	}
	flip(t, j.path(1, sealedSuffix), 10)
	j.blocks.release()
	if c, err := j.Content(t.Context(), good.Content); err == nil {
		t.Errorf("damaged content reads as %+v", c)
	}
}

// clock is a clock that tests set.
type clock struct{ atomic.Int64 }

func (c *clock) now() time.Time { return time.UnixMilli(c.Load()) }

func TestRetention(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		records, content time.Duration
		days             int
		hasRecord        bool
		hasContent       bool
	}{
		"for ever":                  {0, 0, 1000, true, true},
		"young":                     {90 * day, 30 * day, 20, true, true},
		"content is old":            {90 * day, 30 * day, 40, true, false},
		"records are old":           {90 * day, 30 * day, 100, false, false},
		"content goes with records": {10 * day, 30 * day, 20, false, false},
		"records stay for ever":     {0, 30 * day, 40, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			var now clock
			r, body := sample(0)
			now.Store(int64(r.CreatedAt))
			b := &backend{}
			j := open(t, b, Options{Dir: t.TempDir(), Retention: c.records, ContentRetention: c.content, now: now.now})
			if err := j.Append(r, body); err != nil {
				t.Fatal(err)
			}
			seal(t, j, 1)
			wantContent(t, j, r.Content, 0)
			now.Add(int64(c.days) * day.Milliseconds())
			// A segment that is young, which comes after the old one.
			fresh, body := sample(4)
			fresh.CreatedAt = storage.Millis(now.now())
			if err := j.Append(fresh, body); err != nil {
				t.Fatal(err)
			}
			flush(t, j)
			signal(j.tidy)
			has := func() bool {
				got, err := j.Content(t.Context(), r.Content)
				exists, _ := b.Exists(t.Context(), r.ID)
				return err == nil && (got != nil) == c.hasContent && exists == c.hasRecord
			}
			eventually(t, "retention does what it must", has)
			j.keepHouse(t.Context())
			if !has() {
				t.Error("retention goes too far")
			}
			wantContent(t, j, fresh.Content, 4)
		})
	}
}

func TestOldSegmentsAreClosedAndDeletedRaw(t *testing.T) {
	var now clock
	r, body := sample(0)
	now.Store(int64(r.CreatedAt))
	dir := t.TempDir()
	j := open(t, &backend{}, Options{Dir: dir, ContentRetention: time.Hour, now: now.now})
	if err := j.Append(r, body); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	now.Add(2 * time.Hour.Milliseconds())
	eventually(t, "an aged segment goes without another append", func() bool {
		signal(j.tidy)
		return j.Status().RawSegments == 0 && j.Status().SealedSegments == 0
	})
	if c, err := j.Content(t.Context(), r.Content); c != nil || err != nil {
		t.Errorf("deleted content is %+v, %v", c, err)
	}
}
