package journal

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// seal has everything sealed that can be.
func seal(t *testing.T, j *Journal, segments int) {
	t.Helper()
	flush(t, j)
	j.log.turn.Lock()
	if j.log.active != nil {
		j.log.close(j.log.active)
	}
	j.log.turn.Unlock()
	eventually(t, "the segments are sealed", func() bool {
		signal(j.maintenance.wake)
		s := j.Status()
		return s.RawSegments == 0 && s.SealedSegments == segments
	})
}

// alone ends the maintenance of a journal, so that the test can do it.
func alone(j *Journal) {
	j.maintenance.stop()
	<-j.maintenance.ended
}

// Nobody can charge again from a segment that is sealed or deleted: the ledger must have read the
// segment, and be on the disk.
func TestSegmentsWaitForTheLedger(t *testing.T) {
	b := &backend{}
	j := open(t, b, Options{Dir: t.TempDir(), AwaitLedger: true})
	alone(j)
	appendSample(t, j, 0)
	flush(t, j)
	j.log.turn.Lock()
	j.log.close(j.log.active)
	j.log.turn.Unlock()
	appendSample(t, j, 1) // the drain passes the end of the segment
	flush(t, j)
	want := func(n int, when string) {
		t.Helper()
		j.maintenance.pass(t.Context())
		j.mu.Lock()
		defer j.mu.Unlock()
		if sealed := 2 - len(j.log.unsealed); sealed != n {
			t.Errorf("%s: %d segments are sealed, want %d", when, sealed, n)
		}
	}
	want(0, "before the ledger has read them")
	detach := j.witness.Attach("credits", func() (Reach, bool) { return Reach{}, false })
	j.LedgerRead()
	want(0, "while the ledger cannot be synced")
	detach()
	want(1, "then")
}

// What waits for a ledger waits no more when nodes share theirs.
func TestReconfigureEndsTheWaitForTheLedger(t *testing.T) {
	j := open(t, &backend{}, Options{Dir: t.TempDir(), AwaitLedger: true})
	for _, awaits := range []bool{true, false} {
		o := *j.options.Load()
		o.AwaitLedger = awaits
		j.Reconfigure(o)
		j.mu.Lock()
		if j.awaitsLedger != awaits {
			t.Errorf("with AwaitLedger %t, the journal waits: %t", awaits, j.awaitsLedger)
		}
		j.mu.Unlock()
	}
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
			if err := j.AppendAnnotation(&storage.Annotation{Org: "acme", RequestID: r.ID, At: 1}); err != nil {
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
			if c, err := j.Contents().Content(t.Context(), &storage.Record{Content: ref}); c != nil || err != nil {
				t.Errorf("content of %v is %v, %v", ref, c, err)
			}
		}
	}
	check(j)
	j.Close(t.Context())
	check(open(t, b, Options{Dir: dir}))
}

// What a raw segment has of one record is no content of another: a database that was put back refers
// to places that the journal has used again.
func TestContentIsOfItsRecordAlone(t *testing.T) {
	j := open(t, &backend{}, Options{Dir: t.TempDir()})
	r := appendSample(t, j, 0)
	wantContent(t, j, r.Content, 0)
	for _, key := range []storage.RecordKey{{Org: "other", ID: r.ID}, {Org: r.Org, ID: numbered(1)}, {}} {
		if c, err := j.Contents().Content(t.Context(), &storage.Record{Org: key.Org, ID: key.ID, Content: r.Content}); c != nil || err != nil {
			t.Errorf("%v reads the content of another record: %v", key, err)
		}
	}
}

// A reader finds what Content does, in any order, and no more than is its part.
func TestReader(t *testing.T) {
	j := open(t, &backend{}, Options{Dir: t.TempDir(), SegmentBytes: 64 << 10})
	const records = 300
	var refs [records]storage.ContentRef
	for n := range refs {
		r, c := sample(n)
		c.Inputs = map[string]string{"filler": strings.Repeat("of a block ", n*20)}
		if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
			t.Fatal(err)
		}
		refs[n] = r.Content
	}
	flush(t, j)
	eventually(t, "all but the active segment are sealed", func() bool { return j.Status().RawSegments <= 1 })
	if s := j.Status(); s.RawSegments == 0 || s.SealedSegments < 2 {
		t.Fatalf("%d raw segments and %d sealed ones are not what is to be tested", s.RawSegments, s.SealedSegments)
	}
	for part, of := range map[storage.ContentPart]func(*storage.Content) storage.Content{
		storage.WholeContent: func(c *storage.Content) storage.Content { return *c },
		storage.RequestPart: func(c *storage.Content) storage.Content {
			return storage.Content{Request: c.Request, Inputs: c.Inputs, Media: c.Media}
		},
		storage.ResponsePart: func(c *storage.Content) storage.Content { return storage.Content{Response: c.Response} },
	} {
		for order, at := range map[string]func(i int) int{
			"ascending":  func(i int) int { return i },
			"descending": func(i int) int { return records - 1 - i },
			"jumping":    func(i int) int { return i * 97 % records },
		} {
			r := j.Contents().Reader(part)
			for i := range records {
				ref := refs[at(i)]
				rec := &storage.Record{ID: numbered(at(i)), Org: "acme", Content: ref}
				whole, err := j.Contents().Content(t.Context(), rec)
				if err != nil {
					t.Fatal(err)
				}
				got, err := r.Content(t.Context(), rec)
				if err != nil {
					t.Fatal(err)
				}
				if got == nil {
					got = new(storage.Content)
				}
				if want, got := of(whole), of(got); !reflect.DeepEqual(got, want) {
					t.Fatalf("%s, part %d of %v is\n%+v, want\n%+v", order, part, ref, got, want)
				}
			}
			r.Close()
		}
	}
}

// A reader that goes along allocates nothing for an entry.
func TestReaderAllocatesNothing(t *testing.T) {
	j := open(t, &backend{}, Options{Dir: t.TempDir()})
	var refs []storage.ContentRef
	for n := range 300 {
		r, _ := sample(n)
		text := storage.Body{Data: bytes.Repeat([]byte{byte(n)}, 5<<10)}
		if err := j.Append(r, storagetest.Kept(r, &storage.Content{Request: text, Response: text})); err != nil {
			t.Fatal(err)
		}
		refs = append(refs, r.Content)
	}
	seal(t, j, 1)
	eventually(t, "nobody else allocates", func() bool { return len(files(t, j.dir, gramsSuffix)) == 1 })
	r := j.Contents().Reader(storage.WholeContent)
	defer r.Close()
	var record storage.Record
	each := func() {
		for _, record.Content = range refs {
			if c, err := r.Content(t.Context(), &record); err != nil || len(c.Request.Data) != 5<<10 {
				t.Fatal(c, err)
			}
		}
	}
	// A pool that the garbage collector empties costs one allocation now and then.
	if n := testing.AllocsPerRun(10, each); n > float64(len(refs)/10) {
		t.Errorf("%.0f allocations for %d entries", n, len(refs))
	}
}

// A segment of a later version is left alone, and reading it says what to do.
func TestSealedLaterVersion(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	j := open(t, &backend{}, o)
	appendSample(t, j, 0)
	seal(t, j, 1)
	path := segmentPath(j.dir, 1, sealedSuffix)
	j.Close(t.Context())
	later, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	later[len(later)-1] = '9'
	if err := os.WriteFile(path, later, 0o600); err != nil {
		t.Fatal(err)
	}
	j = open(t, &backend{}, o)
	if c, err := j.Contents().Content(t.Context(), &storage.Record{Content: storage.ContentRef{Segment: 1}}); !errors.Is(err, errVersion) {
		t.Errorf("content of a later version is %+v, %v", c, err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, later) {
		t.Errorf("the segment was touched: %v", err)
	}
}

func TestContentWhileSealing(t *testing.T) {
	t.Parallel() // it waits for the disk
	j := open(t, &backend{}, Options{Dir: t.TempDir(), SegmentBytes: 8 << 10})
	var wg sync.WaitGroup
	var latest atomic.Int64
	var mu sync.Mutex
	refs := map[int]storage.ContentRef{}
	ctx, cancel := context.WithCancel(t.Context())
	for range 2 {
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				time.Sleep(50 * time.Microsecond) // and leaves the processor to those that seal
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
	if err := j.Append(first, storagetest.Kept(first, c)); err != nil {
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
	if c, err := j.Contents().Content(t.Context(), &storage.Record{Content: old}); c != nil || err != nil {
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
	raw, err := os.ReadFile(segmentPath(j.dir, 1, rawSuffix))
	if err != nil {
		t.Fatal(err)
	}
	seal(t, j, 1)
	sealed, err := os.ReadFile(segmentPath(j.dir, 1, sealedSuffix))
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
			j.Close(t.Context())
			if left := files(t, dir, temporarySuffix); left != nil {
				t.Errorf("left are %v", left)
			}
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
	path := segmentPath(j.dir, 1, rawSuffix)
	flip(t, path, frames(t, path)[2]-1)
	if c, err := j.Contents().Content(t.Context(), bad); c != nil || err != nil {
		t.Errorf("damaged content reads as %+v, %v", c, err)
	}
	wantContent(t, j, good.Content, 0)
	seal(t, j, 1)
	wantContent(t, j, good.Content, 0)
	if c, err := j.Contents().Content(t.Context(), bad); c != nil || err != nil {
		t.Errorf("content that could not be sealed is %+v, %v", c, err)
	}
	appendSample(t, j, 8)
	flush(t, j)
	wantLostContent(t, j, 1)
	flip(t, segmentPath(j.dir, 1, sealedSuffix), 10)
	if c, err := j.Contents().Content(t.Context(), good); c != nil || err != nil {
		t.Errorf("damaged content reads as %+v, %v", c, err)
	}
	wantLostContent(t, j, 2)
}

// Damage counts once, however often the segment is sealed until that succeeds.
func TestDamageCountsOnce(t *testing.T) {
	for _, name := range []string{"0000000001" + sealedSuffix, sealedName + temporarySuffix} {
		t.Run("without "+name, func(t *testing.T) {
			o := Options{Dir: t.TempDir()}
			b := &backend{}
			j := open(t, b, o)
			appendSample(t, j, 0)
			appendSample(t, j, 4)
			flush(t, j)
			path, inTheWay := segmentPath(j.dir, 1, rawSuffix), filepath.Join(o.Dir, name)
			flip(t, path, frames(t, path)[2]-1)
			if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700); err != nil {
				t.Fatal(err)
			}
			alone(j)
			j.log.turn.Lock()
			j.log.close(j.log.active)
			j.log.turn.Unlock()
			eventually(t, "the segment is drained", func() bool { return len(j.maintenance.deliveredSegments()) == 1 })
			for range 3 {
				if err := j.maintenance.seal(t.Context(), new(sealer), j.maintenance.deliveredSegments()[0]); err == nil {
					t.Fatal("a segment is sealed into a directory")
				}
			}
			if err := os.RemoveAll(inTheWay); err != nil {
				t.Fatal(err)
			}
			j.maintenance.pass(t.Context())
			for range 2 {
				wantLostContent(t, j, 1)
				abandon(j)
				j = open(t, b, o)
			}
		})
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
			if err := j.Append(r, storagetest.Kept(r, body)); err != nil {
				t.Fatal(err)
			}
			seal(t, j, 1)
			wantContent(t, j, r.Content, 0)
			now.Add(int64(c.days) * day.Milliseconds())
			// A segment that is young, which comes after the old one.
			fresh, body := sample(4)
			fresh.CreatedAt = storage.Millis(now.now())
			if err := j.Append(fresh, storagetest.Kept(fresh, body)); err != nil {
				t.Fatal(err)
			}
			flush(t, j)
			signal(j.maintenance.wake)
			has := func() bool {
				got, err := j.Contents().Content(t.Context(), r)
				_, missing := b.Request(t.Context(), r.Key())
				exists := missing == nil
				return err == nil && (got != nil) == c.hasContent && exists == c.hasRecord
			}
			eventually(t, "retention does what it must", has)
			j.maintenance.pass(t.Context())
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
	if err := j.Append(r, storagetest.Kept(r, body)); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	removals := j.Removals()
	now.Add(2 * time.Hour.Milliseconds())
	eventually(t, "an aged segment goes without another append", func() bool {
		signal(j.maintenance.wake)
		return j.Status().RawSegments == 0 && j.Status().SealedSegments == 0
	})
	if c, err := j.Contents().Content(t.Context(), r); c != nil || err != nil {
		t.Errorf("deleted content is %+v, %v", c, err)
	}
	if j.Removals() == removals {
		t.Error("retention is no removal")
	}
}

// A client whose clock is ahead does not keep the content of others.
func TestRecordOfTheFuture(t *testing.T) {
	const day = 24 * time.Hour
	for _, restart := range []string{"no", "raw", "sealed"} {
		t.Run(restart, func(t *testing.T) {
			var now clock
			r, body := sample(0)
			now.Store(time.Now().UnixMilli())
			r.CreatedAt = storage.Millis(now.now())
			b := &backend{}
			dir := t.TempDir()
			o := Options{Dir: dir, ContentRetention: 30 * day, now: now.now}
			j := open(t, b, o)
			if err := j.Append(r, storagetest.Kept(r, body)); err != nil {
				t.Fatal(err)
			}
			future, body := sample(4)
			future.CreatedAt = storage.Millis(now.now().Add(1000 * day))
			if err := j.Append(future, storagetest.Kept(future, body)); err != nil {
				t.Fatal(err)
			}
			if restart == "raw" {
				abandon(j)
				j = open(t, b, o)
			}
			seal(t, j, 1)
			if restart == "sealed" {
				j.Close(t.Context())
				j = open(t, b, o)
			}
			now.Add((40 * day).Milliseconds())
			j.maintenance.pass(t.Context())
			if c, err := j.Contents().Content(t.Context(), r); c != nil || err != nil {
				t.Errorf("content is kept for longer than it may: %v %v", c != nil, err)
			}
		})
	}
}

// A backend flushes what it has when a segment ends, so it must be told of that
// before the segment goes.
func TestBackendKnowsWhatWasSealed(t *testing.T) {
	b := &backend{}
	j := open(t, b, Options{Dir: t.TempDir()})
	appendSample(t, j, 0)
	seal(t, j, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if end := b.batches[len(b.batches)-1].End; end.Segment < 2 {
		t.Errorf("segment 1 is sealed, and the backend at %v", end)
	}
}

// The answer of a call that missed Weir's cache can be read as it came, also when it is sealed. To
// all others it is the object that it makes.
func TestAnswersForTheCacheAreSealedAsTheyCame(t *testing.T) {
	const stream = "data: {\"choices\":[{\"delta\":{\"content\":\"hel\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"lo\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"
	dir := t.TempDir()
	b := &backend{}
	j := open(t, b, Options{Dir: dir})
	var missed, other storage.Record
	for r, cache := range map[*storage.Record]string{&missed: storage.CacheMiss, &other: ""} {
		*r = storage.Record{ID: uuid.New(), Org: "acme", CreatedAt: 1, Dialect: plugins.Chat, Stream: true, AnswerCache: cache}
		k := storage.Keep(r, storage.Content{Response: storage.Body{Type: "text/event-stream", Data: []byte(stream)}}, 1<<20)
		if err := j.Append(r, k); err != nil {
			t.Fatal(err)
		}
	}
	flush(t, j)
	for _, r := range []*storage.Record{&missed, &other} {
		stored, err := j.Request(t.Context(), r.Key())
		if err != nil {
			t.Fatal(err)
		}
		*r = *stored
	}
	check := func(state string) {
		t.Helper()
		for _, r := range []*storage.Record{&missed, &other} {
			content, err := j.Contents().Content(t.Context(), r)
			if err != nil || content.Unassembled != "" || content.Response.Type != "application/json" || !strings.Contains(string(content.Response.Data), `"hello"`) {
				t.Errorf("%s: %+v, %v", state, content, err)
			}
		}
		if answer, err := j.Answer(t.Context(), &missed); err != nil || string(answer.Data) != stream || answer.Type != "text/event-stream" {
			t.Errorf("%s: the answer is %s, %v", state, answer.Data, err)
		}
	}
	check("raw")
	seal(t, j, 1)
	check("sealed")
}
