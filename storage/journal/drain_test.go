package journal

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/testkit/storagetest"
	"github.com/weirhq/weir/storage"
)

func TestFailingBackendLosesNothing(t *testing.T) {
	b := &backend{}
	b.fail(errors.New("connection lost"))
	j := open(t, b, Options{Dir: t.TempDir(), SegmentBytes: 16 << 10})
	var want []uuid.UUID
	for n := range 100 {
		want = append(want, appendSample(t, j, n).ID)
	}
	eventually(t, "the failure shows in the status", func() bool { return j.Status().Err != nil })
	if s := j.Status(); s.FailingSince.IsZero() || s.PendingRecords != 100 {
		t.Errorf("status is %+v", s)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := j.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush with a failing backend: %v", err)
	}
	b.fail(nil)
	flush(t, j)
	if !slices.Equal(b.ids(), want) {
		t.Error("the backend has other records than were appended, or another order")
	}
	if s := j.Status(); s.Err != nil || !s.FailingSince.IsZero() || s.PendingRecords != 0 || s.PendingBytes != 0 {
		t.Errorf("status is %+v", s)
	}
}

func TestBatchesAreBounded(t *testing.T) {
	b := &backend{}
	unblock := b.block()
	defer unblock()
	j := open(t, b, Options{Dir: t.TempDir(), SegmentBytes: 128 << 10})
	const total = 3 * batchEntries
	for n := range total {
		appendSample(t, j, 4*n)
	}
	unblock()
	flush(t, j)
	seen := 0
	var end storage.Position
	for _, batch := range b.batches {
		if len(batch.Records) > batchEntries {
			t.Errorf("a batch of %d records", len(batch.Records))
		}
		if !end.Before(batch.End) {
			t.Errorf("position %v follows %v", batch.End, end)
		}
		end = batch.End
		seen += len(batch.Records)
	}
	if seen != total {
		t.Errorf("%d records arrived, want %d", seen, total)
	}
}

func TestCloseLeavesTheRestForTheNextStart(t *testing.T) {
	b := &backend{}
	b.fail(errors.New("down"))
	dir := t.TempDir()
	j := open(t, b, Options{Dir: dir})
	for n := range 10 {
		appendSample(t, j, n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := j.Close(ctx); err != nil {
		t.Fatal(err)
	}
	unblock := b.block()
	defer unblock()
	j = open(t, b, Options{Dir: dir})
	if !j.Pending(storage.RecordKey{Org: "acme", ID: numbered(9)}) || j.Status().PendingRecords != 10 {
		t.Error("what is replayed is not pending")
	}
	b.fail(nil)
	unblock()
	flush(t, j)
	if got := b.ids(); len(got) != 10 {
		t.Errorf("%d records are replayed, want 10", len(got))
	}
	if s := j.Status(); s.PendingRecords != 0 || s.PendingBytes != 0 {
		t.Errorf("status is %+v", s)
	}
}

func TestTheLastVersionWins(t *testing.T) {
	for name, o := range map[string]Options{"in a segment": {}, "across segments": {SegmentBytes: 1}} {
		for _, together := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				b := &backend{}
				o.Dir = t.TempDir()
				j := open(t, b, o)
				unblock := func() {}
				if together {
					unblock = b.block()
				}
				defer unblock()
				var last *storage.Record
				for version := range 4 {
					r, _ := sample(0)
					_, c := sample(version)
					r.Attempt = version
					if err := j.Append(r, storagetest.Kept(r, c)); err != nil {
						t.Fatal(err)
					}
					last = r
					if !together {
						flush(t, j)
					}
				}
				unblock()
				flush(t, j)
				got, err := b.Request(t.Context(), last.Key())
				if err != nil || got.Attempt != 3 || got.Content != last.Content {
					t.Fatalf("the backend has %+v, %v", got, err)
				}
				if j.Pending(last.Key()) {
					t.Error("the record is still pending")
				}
				wantContentOf(t, j, got, 3)
			})
		}
	}
}

func TestSlowBackendGetsBatches(t *testing.T) {
	b := &backend{}
	unblock := b.block()
	j := open(t, b, Options{Dir: t.TempDir()})
	for n := range 300 {
		appendSample(t, j, 4*n)
	}
	unblock()
	flush(t, j)
	if got := len(b.batches); got > 10 {
		t.Errorf("300 records that waited arrive in %d batches", got)
	}
}
