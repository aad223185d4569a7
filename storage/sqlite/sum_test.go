package sqlite

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
)

// A value that changes without Weir is never answered: the query fails, the host hears of it, and
// Verify counts it. What an editor changes is the editor's word.
func TestDamagedValues(t *testing.T) {
	for name, test := range map[string]struct {
		statements []string
		damaged    bool
	}{
		"an editor":          {statements: []string{"UPDATE requests SET cost = 7", "UPDATE details SET trace_id = 'abc'"}},
		"a cost":             {[]string{"DROP TRIGGER requests_edited", "UPDATE requests SET cost = 7"}, true},
		"a detail":           {[]string{"DROP TRIGGER details_edited", "UPDATE details SET trace_id = 'abc'"}, true},
		"details are gone":   {[]string{"DELETE FROM details"}, true},
		"a model":            {[]string{"UPDATE names SET name = 'gpt-4p' WHERE kind = 'model'"}, true},
		"a model is gone":    {[]string{"DELETE FROM names WHERE kind = 'model'"}, true},
		"a type":             {[]string{"DROP TRIGGER requests_edited", "PRAGMA writable_schema = ON", "UPDATE requests SET turn = 4096"}, true},
		"an earlier version": {statements: []string{"UPDATE requests SET sum = NULL", "UPDATE details SET sum = NULL"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := smallChunks(t)
			var told []string
			host := hostOf(noContents{})
			host.Damaged = func(found string) { told = append(told, found) }
			if _, err := b.Open(t.Context(), host); err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			write(t, b, newTraffic(20).batch(20))
			if problems, err := b.Verify(t.Context()); err != nil || problems != nil {
				t.Fatalf("Verify says %q, %v of a store that is whole", problems, err)
			}
			c, err := openWriter(b.path)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for _, s := range test.statements {
				if _, err := c.exec(s); err != nil {
					t.Fatal(err)
				}
			}
			b.names.cached.clear()
			_, err = b.Requests(t.Context(), &storage.RequestQuery{Org: "default", Filter: storage.All{}, Limit: 100})
			problems, failed := b.Verify(t.Context())
			if failed != nil {
				t.Fatal(failed)
			}
			if errors.Is(err, errDamaged) != test.damaged || len(told) > 0 != test.damaged || len(problems) > 0 != test.damaged {
				t.Errorf("the query says %v, the host was told %q, Verify says %q", err, told, problems)
			}
		})
	}
}

// What is written while Verify reads is no damage.
func TestVerifyBesideWrites(t *testing.T) {
	b := smallChunks(t)
	if _, err := b.Open(t.Context(), hostOf(noContents{})); err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	traffic := newTraffic(200)
	traffic.step = bucketMilliseconds // each record is in a bucket of its own
	var group sync.WaitGroup
	var written atomic.Bool
	group.Go(func() {
		for !written.Load() {
			if problems, err := b.Verify(t.Context()); err != nil || problems != nil {
				t.Errorf("Verify says %q, %v", problems, err)
				return
			}
		}
	})
	for range 100 {
		write(t, b, traffic.batch(2))
	}
	written.Store(true)
	group.Wait()
}

// The position of a journal that is not as it was written does not count.
func TestDamagedPosition(t *testing.T) {
	b := smallChunks(t)
	host := hostOf(noContents{})
	host.Journal, host.Position = uuid.UUID{1}, storage.Position{Segment: 3, Ordinal: 4}
	if _, err := b.Open(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	batch := newTraffic(1).batch(1)
	batch.Journal, batch.End = host.Journal, storage.Position{Segment: 3, Ordinal: 7}
	write(t, b, batch)
	if _, err := b.writer.c.exec("UPDATE journals SET ordinal = 9"); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	told := 0
	host.Damaged = func(string) { told++ }
	p, err := b.Open(t.Context(), host)
	if err != nil || p != host.Position || told != 1 {
		t.Errorf("the position is %v, %v, told %d times", p, err, told)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
