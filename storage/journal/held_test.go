package journal

import (
	"errors"
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
)

// provisional appends a version of record n from before the end of its exchange.
func provisional(t *testing.T, j *Journal, n int) *storage.Record {
	t.Helper()
	r, c := sample(n)
	r.EndState, r.Cost = storage.Interrupted, plugins.Cost{}
	j.Begin(r)
	if err := j.Append(r, c); err != nil {
		t.Fatal(err)
	}
	return r
}

func wantUnseen(t *testing.T, b *backend, j *Journal, r *storage.Record) {
	t.Helper()
	if _, err := b.Request(t.Context(), r.Org, r.ID); !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("the backend has a version from before the end: %v", err)
	}
	if _, err := j.Request(t.Context(), r.Org, r.ID); !errors.Is(err, storage.ErrNotFound) {
		t.Fatalf("a version from before the end is read: %v", err)
	}
	if !j.Pending(r.Org, r.ID) {
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
	got, err := b.Request(t.Context(), r.Org, r.ID)
	if err != nil || got.EndState != storage.Complete || got.Scores["quality"] != 1 {
		t.Errorf("the backend has %+v, %v", got, err)
	}
	wantContent(t, j, got.Content, 0)
	wantUnseen(t, b, j, other)

	j.Abandon(other) // without another version
	eventually(t, "the record is there", func() bool {
		got, err := b.Request(t.Context(), other.Org, other.ID)
		return err == nil && got.EndState == storage.Interrupted
	})
	eventually(t, "nothing is held", func() bool { j.mu.Lock(); defer j.mu.Unlock(); return len(j.held) == 0 })
	wantBalance(t, j, 2, 2, 0, 0, nil)
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
	signal(j.tidy) // whose segments are sealed but for what is held
	appendSample(t, j, 2)
	flush(t, j)
	wantUnseen(t, b, j, left)
	abandon(j)
	for range 2 {
		j = open(t, b, o)
		eventually(t, "the record is there", func() bool {
			got, err := b.Request(t.Context(), left.Org, left.ID)
			return err == nil && got.EndState == storage.Interrupted && got.Scores["quality"] == 1
		})
		if got, err := b.Request(t.Context(), ended.Org, ended.ID); err != nil || got.EndState != storage.Complete {
			t.Errorf("the backend has %+v, %v", got, err)
		}
		wantContent(t, j, left.Content, 0)
		wantBalance(t, j, 3, 3, 0, 0, nil)
		abandon(j)
	}
}
