package embedded

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/sqlite"
)

// Whatever a power cut leaves of the ledger, calls are charged what their records say, once; also
// calls whose record came after the balances were written anew.
func TestChargesComeBackFromRecords(t *testing.T) {
	const cost = 30
	for _, compacts := range []bool{false, true} {
		dir, ctx := t.TempDir(), t.Context()
		j, err := journal.Open(ctx, sqlite.New(filepath.Join(dir, "weir.db")), journal.Options{Dir: dir})
		must(t, err)
		t.Cleanup(func() { _ = j.Close(context.Background()) })
		reopen := func() *Ledger {
			l, err := Open(dir, j, zap.NewNop())
			must(t, err)
			l.detach() // the journal does not learn how far the file reaches
			must(t, l.Recover(ctx))
			_, err = l.Settle(ctx, func(_ credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error) {
				return charged, nil
			})
			must(t, err)
			return l
		}
		l := reopen()
		must(t, l.Grant(ctx, "acme", 100))
		spend := func(l *Ledger, compact bool) {
			t.Helper()
			r := credits.Reservation{
				ID: uuid.New(), Org: "acme", Amount: 50, Lost: 40,
				Holds: []credits.Hold{{Account: acme}, {Account: credits.Account{Org: "acme", Budget: "b"}, Limit: 100}},
			}
			must(t, l.Reserve(ctx, r), l.Charge(ctx, r, cost))
			if compact {
				l.file.limit = 0
				must(t, l.flush())
			}
			charge := credits.Charge{Org: r.Org, Accounts: r.Accounts(), Total: cost}
			record := &storage.Record{
				ID: uuid.New(), Org: r.Org, CreatedAt: 1, EndState: storage.Complete,
				Charges: map[string]string{r.ID.String(): string(charge.AppendJSON(nil))},
			}
			j.Begin(record)
			must(t, j.Append(record, nil), l.Release(ctx, r))
		}
		files := func() (text, state []byte) {
			text, err := os.ReadFile(l.file.path)
			must(t, err)
			state, err = os.ReadFile(l.file.statePath())
			must(t, err)
			return text, state
		}
		before, _ := files()
		if spend(l, compacts); compacts {
			before, _ = files()
			before = before[:l.file.state.Size]
		}
		after, state := files()
		for size := len(before); size <= len(after); size++ {
			if size < len(after) && after[size-1] != '\n' && !bytes.HasSuffix(after[:size], []byte(`"charge":`)) {
				continue // a line that is cut anywhere is dropped
			}
			must(t, os.WriteFile(l.file.path, after[:size], 0o600), os.WriteFile(l.file.statePath(), state, 0o600))
			again := reopen()
			for _, of := range []credits.Account{acme, {Org: "acme", Budget: "b"}} {
				if b, err := again.Balance(ctx, credits.Hold{Account: of, Limit: 100}); err != nil || b.Spent != cost || b.Reserved != 0 {
					t.Errorf("compacts %t, %d of %d bytes: %+v, %v; want %d spent", compacts, size, len(after), b, err, cost)
				}
			}
			must(t, again.file.f.Close())
		}
	}
}

// A charge may survive the record of a call that has ended: it is settled like one that a kill
// has interrupted.
func TestChargesWithoutARecordAreSettled(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	j, err := journal.Open(ctx, sqlite.New(filepath.Join(dir, "weir.db")), journal.Options{Dir: dir})
	must(t, err)
	t.Cleanup(func() { _ = j.Close(context.Background()) })
	l, err := Open(dir, j, zap.NewNop())
	must(t, err)
	l.detach()
	r := credits.Reservation{
		ID: uuid.New(), Org: "acme", Amount: 50, Lost: 40, Call: credits.Call{ID: uuid.New()},
		Holds: []credits.Hold{{Account: credits.Account{Org: "acme", Budget: "b"}, Limit: 100}},
	}
	must(t, l.Reserve(ctx, r), l.Charge(ctx, r, 30), l.Release(ctx, r))
	for range 2 { // a kill between Recover and Settle leaves it as it was
		again, err := Open(dir, j, zap.NewNop())
		must(t, err, again.Recover(ctx))
		again.detach()
		l = again
	}
	var asked []uuid.UUID
	_, err = l.Settle(ctx, func(of credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error) {
		asked = append(asked, of.Call.ID)
		return max(of.Lost, charged), nil
	})
	must(t, err)
	if len(asked) != 1 || asked[0] != r.Call.ID {
		t.Errorf("the records of %v are looked for, want %v", asked, r.Call.ID)
	}
	if b, err := l.Balance(ctx, r.Holds[0]); err != nil || b.Spent != 30 || b.Reserved != 0 {
		t.Errorf("%+v, %v; want 30 spent", b, err)
	}
}
