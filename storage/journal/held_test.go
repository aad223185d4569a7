package journal

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// provisional appends a version of record n from before the end of its exchange.
func provisional(t *testing.T, j *Journal, n int) *storage.Record {
	t.Helper()
	r, c := sample(n)
	r.EndState, r.Cost = storage.Interrupted, plugins.Cost{}
	j.Begin(r)
	if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
		t.Fatal(err)
	}
	return r
}

func wantUnseen(t *testing.T, b *backend, j *Journal, r *storage.Record) {
	t.Helper()
	if _, err := b.Request(t.Context(), r.Key()); !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("the backend has a version from before the end: %v", err)
	}
	if _, err := j.Request(t.Context(), r.Key()); !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("a version from before the end is read: %v", err)
	}
	if !j.Pending(r.Key()) {
		t.Fatal("a record on its way is not known")
	}
}

func TestAVersionFromBeforeTheEndIsSeenOnlyWhenTheExchangeIsOver(t *testing.T) {
	b := &backend{}
	j := open(t, b, Options{Dir: t.TempDir(), SegmentBytes: 1})
	r, other := provisional(t, j, 0), provisional(t, j, 1)
	quality := &storage.Annotation{Org: r.Org, RequestID: r.ID, At: 5, Scores: map[string]float64{"quality": 1}}
	if err := j.AppendAnnotation(quality); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	wantUnseen(t, b, j, r)
	wantUnseen(t, b, j, other)
	if r.EndState = storage.Complete; j.Append(r, nil) != nil {
		t.Fatal("Append failed")
	}
	j.Abandon(r)
	flush(t, j)
	got, err := b.Request(t.Context(), r.Key())
	if err != nil || got.EndState != storage.Complete || got.Scores["quality"] != 1 {
		t.Errorf("the backend has %+v, %v", got, err)
	}
	wantContent(t, j, got.Content, 0)
	wantUnseen(t, b, j, other)

	j.Abandon(other) // without another version
	eventually(t, "the record is there", func() bool {
		got, err := b.Request(t.Context(), other.Key())
		return err == nil && got.EndState == storage.Interrupted
	})
	eventually(t, "nothing is held", func() bool { j.mu.Lock(); defer j.mu.Unlock(); return len(j.versions.held) == 0 })
	wantIntegrity(t, j, 2, 2, 0, 0, nil)
}

// What a crash leaves of an exchange is its last version, and only where there is
// no later one.
func TestACrashLeavesTheVersionFromBeforeTheEnd(t *testing.T) {
	b := &backend{}
	o := Options{Dir: t.TempDir(), SegmentBytes: 1}
	j := open(t, b, o)
	left, ended := provisional(t, j, 0), provisional(t, j, 1)
	if err := j.AppendAnnotation(&storage.Annotation{Org: left.Org, RequestID: left.ID, At: 5, Scores: map[string]float64{"quality": 1}}); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	ended.EndState = storage.Complete
	if err := j.Append(ended, nil); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	signal(j.maintenance.wake) // whose segments are sealed but for what is held
	appendSample(t, j, 2)
	flush(t, j)
	wantUnseen(t, b, j, left)
	abandon(j)
	for range 2 {
		j = open(t, b, o)
		eventually(t, "the record is there", func() bool {
			got, err := b.Request(t.Context(), left.Key())
			return err == nil && got.EndState == storage.Interrupted && got.Scores["quality"] == 1
		})
		if got, err := b.Request(t.Context(), ended.Key()); err != nil || got.EndState != storage.Complete {
			t.Errorf("the backend has %+v, %v", got, err)
		}
		wantContent(t, j, left.Content, 0)
		wantIntegrity(t, j, 3, 3, 0, 0, nil)
		abandon(j)
	}
}

// failing is a backend that fails for batches with a record, once it has applied them
// or instead.
type failing struct {
	backend
	id      uuid.UUID
	applies bool
}

func (b *failing) failFor(id uuid.UUID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.id = id
}

func (b *failing) Write(ctx context.Context, batch *storage.Batch) error {
	b.mu.Lock()
	id := b.id
	b.mu.Unlock()
	for _, r := range batch.Records {
		if r.ID == id {
			if b.applies {
				if err := b.Memory.Write(ctx, batch); err != nil {
					return err
				}
			}
			b.mu.Lock()
			defer b.mu.Unlock()
			b.tried = append(b.tried, *batch)
			return errors.New("the acknowledgement is lost")
		}
	}
	return b.backend.Write(ctx, batch)
}

// What a crash has left is read before the backend has it.
func TestWhatACrashLeavesIsReadAtOnce(t *testing.T) {
	b := &backend{}
	o := Options{Dir: t.TempDir(), SegmentBytes: 1}
	j := open(t, b, o)
	left := provisional(t, j, 0)
	flush(t, j)
	abandon(j)
	defer b.block()()
	j = open(t, b, o)
	if got, err := j.Request(t.Context(), left.Key()); err != nil || got.EndState != storage.Interrupted || got.Content != left.Content {
		t.Errorf("the journal has %+v, %v", got, err)
	}
	wantContent(t, j, left.Content, 0)
}

// A batch under way takes the annotations along that were held of its records. After a
// crash it has them again; where the backend has the batch, they are not written
// after later annotations.
func TestHeldAnnotationsKeepTheirOrderOverACrash(t *testing.T) {
	for name, applies := range map[string]bool{"the backend has the batch": true, "it has not": false} {
		t.Run(name, func(t *testing.T) {
			b := &failing{applies: applies}
			o := Options{Dir: t.TempDir()}
			j := open(t, b, o)
			r := provisional(t, j, 0)
			annotate := func(rating bool) {
				t.Helper()
				a := &storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.CreatedAt, Feedback: &storage.Feedback{Rating: rating}}
				if err := j.AppendAnnotation(a); err != nil {
					t.Fatal(err)
				}
			}
			annotate(false)
			flush(t, j)
			unblock := b.block()
			appendSample(t, j, 1) // the drain is held up with it
			eventually(t, "the drain waits", func() bool { j.mu.Lock(); defer j.mu.Unlock(); return j.delivery.waiting == 0 })
			if r.EndState = storage.Complete; j.Append(r, nil) != nil {
				t.Fatal("Append failed")
			}
			annotate(true)
			b.failFor(r.ID)
			unblock()
			eventually(t, "the batch is under way", func() bool { return j.Status().Err != nil })
			abandon(j)
			first := b.tried[len(b.tried)-1]

			b.failFor(uuid.Nil)
			j = open(t, b, o)
			appendSample(t, j, 2)
			flush(t, j)
			b.mu.Lock()
			batches := slices.Clone(b.batches)
			b.mu.Unlock()
			got, err := b.Request(t.Context(), r.Key())
			if err != nil || got.EndState != storage.Complete || got.Feedback == nil || !got.Feedback.Rating {
				t.Errorf("the backend has %+v with feedback %+v, %v", got, got.Feedback, err)
			}
			if i := slices.IndexFunc(batches, func(again storage.Batch) bool { return again.ID == first.ID }); applies == (i >= 0) {
				t.Errorf("batch %s comes again: %v", first.ID, i >= 0)
			} else if i >= 0 && !reflect.DeepEqual(batches[i], first) {
				t.Errorf("batch %s comes again as\n%+v, and was\n%+v", first.ID, batches[i], first)
			}
			eventually(t, "nothing is held", func() bool { j.mu.Lock(); defer j.mu.Unlock(); return len(j.versions.held) == 0 })
		})
	}
}

// putBack puts an old checkpoint in the place of both copies.
func putBack(t *testing.T, dir string, old []byte) {
	t.Helper()
	for _, name := range checkpointNames {
		if err := os.WriteFile(filepath.Join(dir, name), old, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// What the checkpoint could not say of held entries, the journal finds out: the
// backend is past them, and has no version.
func TestAnOldCheckpointForgetsNoHeldRecord(t *testing.T) {
	b := &backend{}
	o := Options{Dir: t.TempDir()}
	j := open(t, b, o)
	appendSample(t, j, 0)
	flush(t, j)
	old, err := os.ReadFile(filepath.Join(o.Dir, CheckpointName))
	if err != nil {
		t.Fatal(err)
	}
	left, ended := provisional(t, j, 1), provisional(t, j, 2)
	flush(t, j)
	if ended.EndState = storage.Complete; j.Append(ended, nil) != nil {
		t.Fatal("Append failed")
	}
	flush(t, j)
	abandon(j)
	putBack(t, o.Dir, old)
	open(t, b, o)
	eventually(t, "the record is there", func() bool {
		got, err := b.Request(t.Context(), left.Key())
		return err == nil && got.EndState == storage.Interrupted
	})
	if got, err := b.Request(t.Context(), ended.Key()); err != nil || got.EndState != storage.Complete {
		t.Errorf("the backend has %+v, %v", got, err)
	}
}

// However much is held, the checkpoint has room for it.
func TestTheCheckpointHasRoomForWhatIsHeld(t *testing.T) {
	j := open(t, &backend{}, Options{Dir: t.TempDir(), firstSegment: 1 << 40})
	var group []*storage.Record
	for n := range maxHeld + 10 {
		group = append(group, provisional(t, j, n))
	}
	flush(t, j)
	if err := j.AppendAnnotation(&storage.Annotation{Org: group[0].Org, RequestID: group[0].ID, At: 5}); err != nil {
		t.Fatal(err)
	}
	flush(t, j)
	j.checkpoints.mu.Lock()
	defer j.checkpoints.mu.Unlock()
	if n := len(j.checkpoints.last.Held); n != maxHeld || j.checkpoints.err != nil {
		t.Errorf("the checkpoint has %d of %d entries: %v", n, maxHeld, j.checkpoints.err)
	}
}
