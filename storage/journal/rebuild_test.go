package journal

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

// records are the records that a backend has of acme, by id.
func (b *backend) records(t *testing.T) map[uuid.UUID]*storage.Record {
	t.Helper()
	page, err := b.Requests(t.Context(), &storage.RequestQuery{Org: "acme", Filter: storage.All{}, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[uuid.UUID]*storage.Record)
	for _, r := range page {
		all[r.ID] = r
	}
	return all
}

// A database that is gone gets the records of sealed segments that have content there, as they
// were, also if the process is killed meanwhile. What it does not get is counted, once; who was
// erased stays erased, and is not lost.
func TestALostDatabaseGetsTheRecordsOfSealedSegments(t *testing.T) {
	const calls, omitted, erased = 40, 5, 7
	b, o := &failing{}, Options{Dir: t.TempDir(), SegmentBytes: 32 << 10}
	j := open(t, b, o)
	var gone *storage.Record
	for n := range calls {
		r, c := sample(n)
		r.SessionID, r.Charges = "s", map[string]string{"a": "1"}
		kept := storagetest.Kept(r, c)
		switch n {
		case omitted:
			kept = nil
		case 8: // has an image
			c.Request.Data = []byte(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGVsbG8="}}]}]}`)
			kept = storagetest.Kept(r, c)
		}
		j.Begin(r)
		if err := j.Append(r, kept); err != nil {
			t.Fatal(err)
		}
		switch n {
		case 9: // a later version has the content of the first
			later := *r
			later.Number, later.UserID = 0, "later"
			if err := j.Append(&later, nil); err != nil {
				t.Fatal(err)
			}
		case 10:
			if err := j.AppendAnnotation(&storage.Annotation{Org: "acme", RequestID: r.ID, At: 1, Scores: map[string]float64{"quality": 1}}); err != nil {
				t.Fatal(err)
			}
		case erased:
			gone = r
		}
	}
	flush(t, j)
	j.log.turn.Lock()
	j.log.close(j.log.active)
	j.log.turn.Unlock()
	eventually(t, "all segments are sealed", func() bool { signal(j.maintenance.wake); return j.Status().RawSegments == 0 })
	if j.Status().SealedSegments < 2 {
		t.Fatal("there is but one segment")
	}
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme", RequestedAt: 1, Scope: storage.EraseRecord}, []Chosen{{gone.ID, gone.Content}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the erasure is done", func() bool { return j.Erasures("acme")[0].DoneAt != 0 })
	appendSample(t, j, calls) // its segment stays raw
	flush(t, j)
	want := b.records(t)
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(want, numbered(omitted))
	want[numbered(10)].Scores = nil
	want[numbered(10)].UpdatedAt = 0

	whole := os.DirFS(o.Dir)
	// killed is a record in whose batch the process is killed, and applies says whether the backend has
	// the batch by then.
	lose := func(name string, killed uuid.UUID, applies, again bool, lost, exchanges int64) {
		if !again {
			o.Dir = t.TempDir()
			if err := os.CopyFS(o.Dir, whole); err != nil {
				t.Fatal(err)
			}
		}
		t.Run(name, func(t *testing.T) {
			b = &failing{id: killed, applies: applies}
			if killed != uuid.Nil {
				var err error
				if j, err = Open(t.Context(), b, o); err != nil {
					t.Fatal(err)
				}
				eventually(t, "a write has failed", func() bool { return j.Status().Err != nil })
				balanced(t, j)
				abandon(j)
				b.failFor(uuid.Nil)
			}
			for range 2 { // the second start changes nothing
				j = open(t, b, o)
				flush(t, j)
				got := b.records(t)
				for id, w := range want {
					g := got[id]
					if g == nil {
						t.Errorf("record %v is gone", id)
						continue
					}
					g.Version, w.Version = storage.Position{}, storage.Position{} // which a backend need not have
					if !reflect.DeepEqual(g, w) {
						t.Errorf("a record is\n%+v, not\n%+v", g, w)
					}
					if c, err := j.Contents().Content(t.Context(), g); c == nil || err != nil {
						t.Errorf("the content of %v: %v %v", id, c, err)
					}
				}
				if len(got) != len(want) {
					t.Errorf("%d records, want %d", len(got), len(want))
				}
				i := balanced(t, j)
				var entries int64
				for _, l := range i.Losses {
					if l.Reason == storage.LostDatabase {
						entries += l.Count
					}
				}
				if entries != lost || i.Lost() != exchanges || i.Recorded != calls+1-exchanges || len(i.Damage) == 0 {
					t.Errorf("%d entries and %d exchanges are lost, want %d and %d: %+v", entries, i.Lost(), lost, exchanges, i)
				}
				if err := j.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	// The omitted record and the annotation.
	lose("gone", numbered(0), false, false, 2, 1)
	lose("gone before the checkpoint has a segment that the backend has", numbered(0), true, false, 2, 1)
	lose("gone in the last batch", numbered(calls-1), true, false, 2, 1)
	lose("gone without a kill", uuid.Nil, false, false, 2, 1)
	lose("gone again", numbered(0), false, true, 2, 1)
}

// olderCopy returns a backend as another was after its first batches.
func olderCopy(t *testing.T, b *backend, j *Journal, batches int) *backend {
	t.Helper()
	old := &backend{}
	if _, err := old.Open(t.Context(), &storage.Host{Journal: j.identity, Contents: j.Contents()}); err != nil {
		t.Fatal(err)
	}
	for i := range b.batches[:batches] {
		if err := old.Write(t.Context(), &b.batches[i]); err != nil {
			t.Fatal(err)
		}
	}
	return old
}

// Losses between the backend's position and the journal's count once, wherever the backend proves
// to be.
func TestLossesCountOnceIfTheBackendIsElsewhere(t *testing.T) {
	b, o := &backend{}, Options{Dir: t.TempDir()}
	j := open(t, b, o)
	appendSample(t, j, 0)
	flush(t, j)
	before, err := os.ReadFile(filepath.Join(o.Dir, CheckpointName))
	if err != nil {
		t.Fatal(err)
	}
	batches := len(b.batches)
	given, _ := sample(9)
	j.Begin(given)
	j.Abandon(given)
	appendSample(t, j, 1) // after the loss
	flush(t, j)
	old := olderCopy(t, b, j, batches)
	abandon(j)
	check := func(what string, b *backend) {
		for range 2 { // the second start reads what the first has noted
			j = open(t, b, o)
			flush(t, j)
			if i := balanced(t, j); i.Seen != 3 || i.Recorded != 2 || len(i.Losses) != 1 || i.Losses[0].Count != 1 || settled(j, storage.LostInterrupted) != 1 {
				t.Errorf("%s: %+v, and %d are lost before the position", what, i, settled(j, storage.LostInterrupted))
			}
			abandon(j)
		}
	}
	putBack(t, o.Dir, before)
	check("the backend has more than the checkpoint says", b)
	check("the backend has less", old)
}

// A database that stops in the middle of a segment lacks the rest of it. What of the rest has no
// content is lost, and not what the database has.
func TestAnOlderDatabaseLacksTheRestOfASegment(t *testing.T) {
	for name, versions := range map[string]int{"one version": 1, "also a version from before the end": 2} {
		t.Run(name, func(t *testing.T) {
			const calls, has = 10, 6
			b, o := &backend{}, Options{Dir: t.TempDir()}
			j := open(t, b, o)
			batches := 0
			for n := range calls {
				r, c := sample(n)
				kept := storagetest.Kept(r, c)
				if n%2 == 0 {
					kept = nil
				}
				if versions > 1 {
					r.EndState = storage.Interrupted
				}
				j.Begin(r)
				for range versions {
					if err := j.Append(r, kept); err != nil {
						t.Fatal(err)
					}
					kept, r.EndState = nil, storage.Complete
				}
				j.Abandon(r)
				if n == has-1 {
					flush(t, j)
					batches = len(b.batches)
				}
			}
			flush(t, j)
			old := olderCopy(t, b, j, batches)
			seal(t, j, 1)
			if err := j.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				j = open(t, old, o)
				flush(t, j)
				i := balanced(t, j)
				// Two exchanges. With more versions than exchanges, nobody knows which entries they are.
				if lost := i.Lost(); lost < 2 || versions == 1 && lost > 2 || len(i.Losses) != 1 || i.Losses[0].Reason != storage.LostDatabase {
					t.Errorf("%d are lost: %+v", lost, i)
				}
				if got := old.records(t); len(got) != has+2 {
					t.Errorf("%d records", len(got))
				}
				if err := j.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// What a lost database does not get again is counted once, also if the process is killed after the
// checkpoint is behind the segment, and before the list of sealed segments says so.
func TestWhatASegmentLacksIsCountedOnceWhereverAKillIs(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	j := open(t, &backend{}, o)
	for n := range 4 {
		r, c := sample(n)
		kept := storagetest.Kept(r, c)
		if n == 1 {
			kept = nil
		}
		j.Begin(r)
		if err := j.Append(r, kept); err != nil {
			t.Fatal(err)
		}
	}
	seal(t, j, 1)
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := &backend{} // has lost all
	unblock := b.block()
	j = open(t, b, o)
	inTheWay := filepath.Join(o.Dir, sealedName+temporarySuffix, "x")
	if err := os.MkdirAll(inTheWay, 0o700); err != nil {
		t.Fatal(err)
	}
	unblock()
	flush(t, j)
	abandon(j)
	if err := os.RemoveAll(filepath.Dir(inTheWay)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // another loss
		j = open(t, &backend{}, o)
		flush(t, j)
		wantIntegrity(t, j, 4, 3, 0, 0, map[string]int64{storage.LostDatabase: 1})
		abandon(j)
	}
}

// A record that was erased before its segment was sealed is not lost with the database, with content or
// without.
func TestALostDatabaseDoesNotLoseWhatWasErased(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	j := open(t, &backend{}, o)
	var chosen []Chosen
	for n := range 4 {
		r, c := sample(n)
		kept := storagetest.Kept(r, c)
		if n%2 == 0 {
			kept = nil
		}
		j.Begin(r)
		if err := j.Append(r, kept); err != nil {
			t.Fatal(err)
		}
		if n < 2 {
			chosen = append(chosen, Chosen{r.ID, r.Content})
		}
	}
	flush(t, j)
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme", RequestedAt: 1, Scope: storage.EraseRecord, Records: 2}, chosen); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the erasure is done", func() bool { return j.Erasures("acme")[0].DoneAt != 0 })
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	j = open(t, &backend{}, o)
	flush(t, j)
	wantIntegrity(t, j, 4, 3, 0, 0, map[string]int64{storage.LostDatabase: 1})
}

// A database from before an erasure has what was erased. It goes once more, also if raw segments have all
// that the database lacks.
func TestAnOlderDatabaseLosesWhatWasErased(t *testing.T) {
	b, o := &backend{}, Options{Dir: t.TempDir()}
	j := open(t, b, o)
	first := appendSample(t, j, 0)
	flush(t, j)
	old := olderCopy(t, b, j, len(b.batches))
	if err := j.Erase(Erasure{ID: uuid.New(), Org: "acme", RequestedAt: 1, Scope: storage.EraseRecord, Records: 1}, []Chosen{{first.ID, first.Content}}); err != nil {
		t.Fatal(err)
	}
	done := func() bool { return j.Erasures("acme")[0].DoneAt != 0 }
	eventually(t, "the erasure is done", done)
	appendSample(t, j, 1)
	flush(t, j)
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	j = open(t, old, o)
	flush(t, j)
	eventually(t, "the erasure is done again", done)
	if got := old.records(t); len(got) != 1 {
		t.Errorf("%d records", len(got))
	}
}

// With the database, the records of a sealed segment are lost that is gone, too: they count with both.
func TestALostDatabaseLacksTheRecordsOfALostSegment(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	j := open(t, &backend{}, o)
	for n := range 4 {
		appendSample(t, j, n)
	}
	seal(t, j, 1)
	appendSample(t, j, 4)
	flush(t, j)
	if err := j.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := files(t, o.Dir, sealedSuffix)[0]
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b := &backend{}
	for range 2 {
		j = open(t, b, o)
		flush(t, j)
		wantIntegrity(t, j, 5, 1, 0, 0, map[string]int64{storage.LostDatabase: 4})
		wantLostContent(t, j, 4)
		if found := j.Integrity().Damage; !slices.ContainsFunc(found, func(d FileDamage) bool { return d.File == filepath.Base(path) }) {
			t.Errorf("nothing is said of %s: %v", filepath.Base(path), found)
		}
		if err := j.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
