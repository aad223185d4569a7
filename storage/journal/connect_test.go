package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// refusing is a backend that does not open, or takes some records never.
type refusing struct {
	backend
	down   error
	poison map[uuid.UUID]bool
}

func (b *refusing) Open(ctx context.Context, h *storage.Host) (storage.Position, error) {
	b.mu.Lock()
	err := b.down
	b.mu.Unlock()
	if err != nil {
		return storage.Position{}, err
	}
	return b.backend.Open(ctx, h)
}

func (b *refusing) Write(ctx context.Context, batch *storage.Batch) error {
	for _, r := range batch.Records {
		if b.poison[r.ID] {
			return fmt.Errorf("too strange: %w", storage.ErrRejected)
		}
	}
	for _, a := range batch.Annotations {
		if b.poison[a.RequestID] {
			return fmt.Errorf("too strange: %w", storage.ErrRejected)
		}
	}
	return b.backend.Write(ctx, batch)
}

func TestTrafficIsRecordedWhileTheBackendIsDownAtStart(t *testing.T) {
	b := &refusing{down: errors.New("connection refused")}
	o := Options{Dir: t.TempDir(), firstSegment: 1}
	for round := range 3 {
		j, err := Open(t.Context(), b, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Connected(t.Context()); !errors.Is(err, b.down) {
			t.Errorf("Connected = %v", err)
		}
		r := appendSample(t, j, round)
		if got, err := j.Request(t.Context(), r.Key()); err != nil || got.UserID != r.UserID {
			t.Errorf("the record reads as %+v, %v", got, err)
		}
		if s := j.Status(); s.Err == nil || s.PendingRecords != int64(round+1) {
			t.Errorf("status %+v", s)
		}
		balanced(t, j)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if err := j.Close(ended); err != nil {
			t.Fatal(err)
		}
	}
	b.mu.Lock()
	b.down = nil
	b.mu.Unlock()
	j := open(t, b, o)
	flush(t, j)
	if got := b.ids(); len(got) != 3 {
		t.Errorf("%d records arrive, want 3", len(got))
	}
	wantIntegrity(t, j, 3, 3, 0, 0, nil)
}

func TestWhatTheBackendRejectsIsLostAloneAndCounted(t *testing.T) {
	b := &refusing{poison: map[uuid.UUID]bool{numbered(3): true, numbered(40): true}}
	o := Options{Dir: t.TempDir()}
	unblock := b.block()
	j := open(t, b, o)
	for n := range 64 {
		r := appendSample(t, j, n)
		if n%8 == 0 {
			a := &storage.Annotation{Org: r.Org, RequestID: r.ID, At: r.CreatedAt, Scores: map[string]float64{"quality": 1}}
			if err := j.AppendAnnotation(a); err != nil {
				t.Fatal(err)
			}
		}
	}
	unblock()
	flush(t, j)
	// One annotation is on a poisoned record.
	lost := map[string]int64{storage.LostRejected: 2}
	wantIntegrity(t, j, 64, 62, 0, 0, lost)
	if got := settled(j, storage.LostRejected); got != 3 {
		t.Errorf("%d entries are rejected, want 3", got)
	}
	if got := len(b.ids()); got != 62 {
		t.Errorf("the backend has %d records, want 62", got)
	}
	j.Close(t.Context())
	j = open(t, b, o)
	wantIntegrity(t, j, 64, 62, 0, 0, lost)
}

// A batch that was under way when the process ended comes again as it was.
func TestABatchComesAgainAsItWas(t *testing.T) {
	b := &backend{}
	o := Options{Dir: t.TempDir()}
	j := open(t, b, o)
	b.fail(errors.New("the acknowledgement is lost"))
	for n := range 5 {
		appendSample(t, j, n)
	}
	eventually(t, "a batch is under way", func() bool { return j.Status().Err != nil })
	b.mu.Lock()
	first := b.tried[len(b.tried)-1]
	b.mu.Unlock()
	for n := 5; n < 10; n++ {
		appendSample(t, j, n)
	}
	abandon(j)
	b.fail(nil)
	j = open(t, b, o)
	flush(t, j)
	again := b.batches[0]
	if again.ID != first.ID || again.End != first.End || again.Journal != first.Journal || len(again.Records) != len(first.Records) {
		t.Errorf("batch %s up to %v with %d records comes again as %s up to %v with %d", first.ID, first.End, len(first.Records), again.ID, again.End, len(again.Records))
	}
	if got := len(b.ids()); got != 10 {
		t.Errorf("%d records arrive, want 10", got)
	}
}

// The backend may have less than the journal thinks, or more.
func TestTheBackendSaysHowFarItIs(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string, old []byte, b *backend){
		"restored from a backup": func(_ *testing.T, _ string, _ []byte, b *backend) { b.Memory.Forget() },
		"an old checkpoint": func(t *testing.T, dir string, old []byte, _ *backend) {
			putBack(t, dir, old)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &backend{}
			o := Options{Dir: t.TempDir()}
			j := open(t, b, o)
			appendSample(t, j, 0)
			flush(t, j)
			abandon(j)
			old, err := os.ReadFile(o.Dir + "/" + CheckpointName)
			if err != nil {
				t.Fatal(err)
			}
			j = open(t, b, o)
			for n := 1; n < 6; n++ {
				appendSample(t, j, n)
			}
			flush(t, j)
			wantIntegrity(t, j, 6, 6, 0, 0, nil)
			abandon(j)
			spoil(t, o.Dir, old, b)
			j = open(t, b, o)
			flush(t, j)
			i := balanced(t, j)
			if i.Seen != 6 || i.Waiting != 0 || i.Recorded+i.Lost() != 6 {
				t.Errorf("the reconciliation is %+v", i)
			}
			if _, err := b.Request(t.Context(), storage.RecordKey{Org: "acme", ID: numbered(5)}); err != nil {
				t.Errorf("the last record: %v", err)
			}
		})
	}
}

// silentAtEnd is a backend that does not acknowledge the last part of a divided batch.
type silentAtEnd struct{ refusing }

func (b *silentAtEnd) Write(ctx context.Context, batch *storage.Batch) error {
	err := b.refusing.Write(ctx, batch)
	if _, part, _ := strings.Cut(batch.ID, "/"); err == nil && part == "end" {
		return errors.New("the acknowledgement is lost")
	}
	return err
}

// A rejected record is lost once, also if the process is killed after the backend has its batch, and
// before the journal knows.
func TestWhatTheBackendRejectsIsCountedOnceWhereverAKillIs(t *testing.T) {
	for name, records := range map[string]int{"alone": 1, "among others": 8} {
		t.Run(name, func(t *testing.T) {
			b := &silentAtEnd{refusing{poison: map[uuid.UUID]bool{numbered(records / 2): true}}}
			o := Options{Dir: t.TempDir()}
			unblock := b.block()
			j := open(t, b, o)
			for n := range records {
				appendSample(t, j, n)
			}
			unblock()
			eventually(t, "the batch is written", func() bool { return j.Status().Err != nil })
			abandon(j)
			for range 2 {
				j = open(t, &b.refusing, o)
				flush(t, j)
				wantIntegrity(t, j, int64(records), int64(records-1), 0, 0, map[string]int64{storage.LostRejected: 1})
				if got := settled(j, storage.LostRejected); got != 1 {
					t.Errorf("%d entries are rejected before the position, want 1", got)
				}
				abandon(j)
			}
		})
	}
}

// marked is a backend that has lost its records if it has no mark.
type marked struct {
	backend
	dir    string
	marked bool
	err    error // of Mark
	seen   checkpoint
}

func (b *marked) Open(ctx context.Context, h *storage.Host) (storage.Position, error) {
	if _, err := b.backend.Open(ctx, h); err != nil {
		return storage.Position{}, err
	}
	if h.Database == "marked" && !b.marked {
		h.Database = ""
		return storage.Position{}, nil
	}
	return h.Position, nil
}

func (b *marked) Mark(_ context.Context, h *storage.Host) (err error) {
	if _, b.seen, err = readCheckpoints(b.dir); err == nil {
		err = b.err
	}
	if err == nil {
		b.marked, h.Database = true, "marked"
	}
	return err
}

// What a backend has lost is in the checkpoint before the backend may forget it, and counts once.
func TestALossIsSavedBeforeTheBackendMarksItsStore(t *testing.T) {
	dir := t.TempDir()
	b, o := &marked{dir: dir}, Options{Dir: dir}
	j := open(t, b, o)
	appendSample(t, j, 0)
	flush(t, j)
	abandon(j)
	if b.seen.Database != "" || j.checkpoints.last.Database != "marked" {
		t.Errorf("the database is %q before it has a mark, and %q with it", b.seen.Database, j.checkpoints.last.Database)
	}
	b.marked, b.err = false, errors.New("no rights")
	j, err := Open(t.Context(), b, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Connected(t.Context()); err == nil {
		t.Error("a backend that cannot mark its store is open")
	}
	abandon(j)
	if b.seen.Database != "" || b.seen.Position != (storage.Position{}) {
		t.Errorf("before the mark, the checkpoint has %q, %v", b.seen.Database, b.seen.Position)
	}
	b.err = nil
	j = open(t, b, o)
	flush(t, j)
	wantIntegrity(t, j, 1, 1, 0, 0, nil)
	if !b.marked || j.checkpoints.last.Database != "marked" {
		t.Error("the store has no mark")
	}
}
