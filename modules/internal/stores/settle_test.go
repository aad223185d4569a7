package stores

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/credits/embedded"
)

// A call that a killed process left costs the most that it can have cost, unless its record is
// whole. A record of the same id from before the call, or from after the kill, is another call's.
func TestCallsThatAKilledProcessLeft(t *testing.T) {
	config, unload := configured(t, filepath.Join(t.TempDir(), "weir.db"), "")
	t.Cleanup(unload)
	if err := config.Start(); err != nil { // which waits for the database
		t.Fatal(err)
	}
	store := config.Store()
	j, err := store.Journal()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		recorded storage.Timestamp // 0: there is no record
		want     plugins.Nanodollars
	}{
		"without a record":               {0, 40},
		"with its record":                {1000, 0},
		"with that of a later attempt":   {1500, 0},
		"with that of an earlier call":   {500, 40},
		"with that of a call made since": {storage.Millis(time.Now().Add(time.Hour)), 40},
	} {
		t.Run(name, func(t *testing.T) {
			call := credits.Call{ID: uuid.New(), CreatedAt: 1000, Provider: "openai", Model: "gpt-4o"}
			if c.recorded != 0 {
				r := &storage.Record{
					Org: DefaultName, ID: call.ID, CreatedAt: c.recorded, UpdatedAt: c.recorded, Provider: "openai", Model: "gpt-4o",
					EndState: storage.Complete, Cost: plugins.KnownCost(3),
				}
				j.Begin(r)
				if err := j.Append(r, nil); err != nil {
					t.Fatal(err)
				}
			}
			hold := credits.Hold{Account: credits.Account{Org: DefaultName, Budget: "b"}, Limit: 100}
			dir := t.TempDir()
			killed, err := embedded.Open(dir, nil, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			if err := killed.Reserve(t.Context(), credits.Reservation{
				ID: uuid.New(), Org: DefaultName, Amount: 50, Lost: 40, Holds: []credits.Hold{hold}, Call: call,
			}); err != nil {
				t.Fatal(err)
			}
			ledger, err := embedded.Open(dir, nil, zap.NewNop())
			if err != nil {
				t.Fatal(err)
			}
			if settled, err := store.settler(ledger).settle(t.Context()); !settled || err != nil {
				t.Fatal(settled, err)
			}
			if b, err := ledger.Balance(t.Context(), hold); err != nil || b.Spent != c.want || b.Reserved != 0 {
				t.Errorf("%+v, %v; want %d spent", b, err, c.want)
			}
		})
	}
}

// repeating is a ledger that is away after each settlement but the last.
type repeating struct {
	credits.Ledger
	of credits.Reservation
}

func (l repeating) Settle(_ context.Context, total func(credits.Reservation, plugins.Nanodollars) (plugins.Nanodollars, error)) (bool, error) {
	for range 3 {
		if _, err := total(l.of, 0); err != nil {
			return false, err
		}
	}
	return true, nil
}

// A call that a killed process left has one record, however often it is settled, also if another call has its id.
func TestSettlementsThatAreRepeated(t *testing.T) {
	config, unload := configured(t, filepath.Join(t.TempDir(), "weir.db"), "")
	t.Cleanup(unload)
	if err := config.Start(); err != nil {
		t.Fatal(err)
	}
	store := config.Store()
	j, err := store.Journal()
	if err != nil {
		t.Fatal(err)
	}
	for name, isTaken := range map[string]bool{"its own id": false, "that of another call": true} {
		t.Run(name, func(t *testing.T) {
			r := credits.Reservation{
				ID: uuid.New(), Org: uuid.NewString(), Lost: 40, Call: credits.Call{ID: uuid.New(), CreatedAt: 1000},
				Holds: []credits.Hold{{Account: credits.Account{Org: DefaultName, Budget: "b"}, Limit: 100}},
			}
			if isTaken {
				other := &storage.Record{Org: r.Org, ID: r.Call.ID, CreatedAt: 500, UpdatedAt: 500, EndState: storage.Complete, Cost: plugins.KnownCost(3)}
				j.Begin(other)
				if err := j.Append(other, nil); err != nil {
					t.Fatal(err)
				}
			}
			if settled, err := store.settler(repeating{of: r}).settle(t.Context()); !settled || err != nil {
				t.Fatal(settled, err)
			}
			if err := j.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			found, err := j.Backend().Requests(t.Context(), &storage.RequestQuery{Org: r.Org, Filter: storage.All{}, Limit: 10})
			settled := slices.DeleteFunc(found, func(r *storage.Record) bool { return r.EndState == storage.Complete })
			if err != nil || len(settled) != 1 || settled[0].Cost != plugins.KnownCost(40) {
				t.Errorf("%d records, %v; want one that costs 40", len(settled), err)
			}
		})
	}
}

// A call of several rounds that a killed process left costs what all its rounds can have cost, in
// whichever order the ledger has them.
func TestRoundsThatAKilledProcessLeft(t *testing.T) {
	config, unload := configured(t, filepath.Join(t.TempDir(), "weir.db"), "")
	t.Cleanup(unload)
	if err := config.Start(); err != nil {
		t.Fatal(err)
	}
	j, err := config.Store().Journal()
	if err != nil {
		t.Fatal(err)
	}
	r := &storage.Record{Org: DefaultName, ID: uuid.New(), CreatedAt: 1000, UpdatedAt: 1000, EndState: storage.Interrupted, Cost: plugins.KnownCost(10)}
	j.Begin(r)
	if err := j.Append(r, nil); err != nil {
		t.Fatal(err)
	}
	j.Abandon(r)
	dir := t.TempDir()
	killed, err := embedded.Open(dir, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	for _, spent := range []plugins.Nanodollars{10, 0} { // the last round first
		if err := killed.Reserve(t.Context(), credits.Reservation{
			ID: uuid.New(), Org: DefaultName, Amount: 50, Lost: 40, Call: credits.Call{ID: r.ID, CreatedAt: 1000, Spent: spent},
			Holds: []credits.Hold{{Account: credits.Account{Org: DefaultName, Budget: "b"}, Limit: 100}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	ledger, err := embedded.Open(dir, nil, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if settled, err := config.Store().settler(ledger).settle(t.Context()); !settled || err != nil {
		t.Fatal(settled, err)
	}
	if got, err := j.Request(t.Context(), r.Key()); err != nil {
		t.Error(err)
	} else if got.Cost != plugins.KnownCost(50) {
		t.Errorf("the record has %v, want 50", got.Cost.N)
	}
}
