package sqlite

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/columnar"
)

// sessionsByCost asks for all sessions, which no index finds.
var sessionsByCost = &storage.SessionQuery{
	Org: "default", Filter: storage.All{}, Window: storage.Always, Limit: 10, Sort: []storage.SessionSort{{Key: storage.SessionTotalCost}},
}

// What has no room is an error, and leaves other queries alone.
func TestTooManyGroups(t *testing.T) {
	b := newBackend(t)
	batch := newTraffic(100).batch(100)
	for _, r := range batch.Records {
		r.RootID = uuid.New()
	}
	write(t, b, batch)
	hour := storage.Window{From: batch.Records[0].CreatedAt, To: batch.Records[99].CreatedAt}
	first := storage.Window{From: hour.From, To: hour.From}
	sessions := func(w storage.Window) error {
		q := *sessionsByCost
		q.Window = w
		_, err := q.Answer(t.Context(), b)
		return err
	}
	trees := func(w storage.Window) error {
		_, err := (&storage.MetricsQuery{Org: "default", Filter: storage.All{}, Window: w, By: storage.Dimension{Name: storage.ByTree}, Bucket: storage.BucketNone, Limit: 10}).Answer(t.Context(), b)
		return err
	}
	overview := func(w storage.Window) error {
		_, err := (&storage.UserOverviewQuery{Org: "default", Filter: storage.All{}, Window: w}).Answer(t.Context(), b)
		return err
	}
	for name, test := range map[string]struct {
		room columnar.Limits
		ask  func(storage.Window) error
	}{
		"groups":                 {columnar.Limits{Totals: 3, Cells: 100, Few: 100, Most: 7}, sessions},
		"trees":                  {columnar.Limits{Totals: 3, Cells: 100, Few: 100, Most: 7}, trees},
		"cells":                  {columnar.Limits{Totals: 100, Cells: 60, Few: 100, Most: 100}, overview},
		"cells in several scans": {columnar.Limits{Totals: 3, Cells: 60, Few: 100, Most: 100}, overview},
	} {
		b.columns.Limits = columnar.StandardRoom
		if err := test.ask(hour); err != nil {
			t.Errorf("%s with room: %v", name, err)
		}
		b.columns.Limits = test.room
		if err := test.ask(hour); !errors.Is(err, storage.ErrTooManyGroups) {
			t.Errorf("%s: %v, want ErrTooManyGroups", name, err)
		}
		if err := test.ask(first); err != nil {
			t.Errorf("%s of one: %v", name, err)
		}
	}
}

// The memory of queries with many groups must not add up, and others must not wait.
func TestManyGroupsTakeTurns(t *testing.T) {
	b := newBackend(t)
	write(t, b, newTraffic(100).batch(100))
	b.columns.Limits.Few = 7
	soon := func() context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	many := &storage.GroupQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, By: []storage.Dimension{{Name: storage.ByUser}}}
	stopped := errors.New("enough")
	err := b.Groups(t.Context(), many, func(*storage.GroupTotals) error {
		if _, err := sessionsByCost.Answer(soon(), b); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("another query with many groups: %v", err)
		}
		waiting, giveUp := context.WithCancel(t.Context())
		var queries sync.WaitGroup
		defer queries.Wait()
		defer giveUp()
		for range maxReaders {
			queries.Go(func() { _, _ = sessionsByCost.Answer(waiting, b) })
		}
		for begun := time.Now(); len(b.readers.turns) > 0 && time.Since(begun) < 100*time.Millisecond; {
			time.Sleep(time.Millisecond) // until they have all connections, which they must not keep
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		few := &storage.FacetQuery{Org: "default", Filter: storage.All{}, Window: storage.Always, Fields: []storage.Dimension{{Name: "provider"}}}
		if _, err := few.Answer(ctx, b); err != nil {
			t.Errorf("a query with few groups: %v", err)
		}
		return stopped
	})
	if !errors.Is(err, stopped) {
		t.Fatal(err)
	}
	if _, err := sessionsByCost.Answer(t.Context(), b); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
