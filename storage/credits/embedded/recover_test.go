package embedded

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
	"github.com/weirhq/weir/storage/sqlite"
)

// Whatever a power cut leaves of the ledger, calls are charged what their records say, once:
// whenever the balances are written anew, or cannot be, and also if the record comes after the end of
// the reservation, as that of an attempt does that another one follows.
func TestChargesComeBackFromRecords(t *testing.T) {
	const cost = 30
	for _, steps := range []string{
		"charge append release",
		"charge compact append release",
		"charge append compact release",
		"charge release compact append",
		"charge append release compact append",
		"charge compact release compact append",
		"compact+charge append release",
		"fail charge append release",
		"fail charge release compact append",
		"fail charge release fail compact append",
		"charge interrupted release compact append",
	} {
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
		compact := func(l *Ledger) {
			l.file.limit = 0
			must(t, l.flush())
		}
		must(t, l.Grant(ctx, "acme", 100))
		size, generation, sync := l.file.size, l.file.state.Generation, l.file.sync
		r := credits.Reservation{
			ID: uuid.New(), Org: "acme", Amount: 50, Lost: 40,
			Holds: []credits.Hold{{Account: acme}, {Account: credits.Account{Org: "acme", Budget: "b"}, Limit: 100}},
		}
		must(t, l.Reserve(ctx, r))
		record := &storage.Record{ID: uuid.New(), Org: r.Org, CreatedAt: 1, EndState: storage.Complete, Charges: make(map[string]string)}
		j.Begin(record)
		note := func() {
			if c, ok := l.Charged(r.ID); ok {
				record.Charges[r.ID.String()] = string(c.AppendJSON(nil))
			}
		}
		for step := range strings.FieldsSeq(steps) {
			switch step {
			case "charge":
				must(t, l.Charge(ctx, r, cost))
			case "compact":
				compact(l)
			case "compact+charge": // while the balances are being written
				l.file.sync = func(f *os.File) error { return errors.Join(l.charge(r, cost), sync(f)) }
				compact(l)
			case "fail":
				l.file.sync = func(*os.File) error { return errors.New("no space") }
				compact(l)
			case "interrupted":
				version := *record
				version.EndState = storage.Interrupted
				must(t, j.Append(&version, nil))
			case "append":
				must(t, j.Append(record, nil))
			case "release":
				must(t, l.Release(ctx, r))
			}
			l.file.sync = sync
			note()
		}
		if l.file.state.Generation > generation {
			size = l.file.state.Size
		}
		text, err := os.ReadFile(l.file.path)
		must(t, err)
		state, err := os.ReadFile(l.file.statePath())
		must(t, err, l.file.f.Close())
		for ; size <= int64(len(text)); size++ {
			if left := text[:size]; len(left) < len(text) && left[size-1] != '\n' && !bytes.HasSuffix(left, []byte(`"charge":`)) {
				continue // a line that is cut anywhere is dropped
			}
			must(t, os.WriteFile(l.file.path, text[:size], 0o600), os.WriteFile(l.file.statePath(), state, 0o600))
			j.Witness().Note(FileName, journal.Reach{})
			for _, when := range []string{"once", "again", "after new balances"} {
				again := reopen()
				for _, of := range []credits.Account{acme, {Org: "acme", Budget: "b"}} {
					if b, err := again.Balance(ctx, credits.Hold{Account: of, Limit: 100}); err != nil || b.Spent != cost || b.Reserved != 0 {
						t.Errorf("%s, %d of %d bytes, %s: %+v, %v; want %d spent", steps, size, len(text), when, b, err, cost)
					}
				}
				if when == "again" {
					compact(again)
				}
				must(t, again.file.f.Close())
			}
		}
	}
}

// A record may say less than the ledger was charged, because its last version is lost: nothing is
// given back.
func TestRecordsGiveNothingBack(t *testing.T) {
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
	must(t, l.Reserve(ctx, r), l.Charge(ctx, r, 10))
	c, _ := l.Charged(r.ID)
	record := &storage.Record{ID: r.Call.ID, Org: r.Org, CreatedAt: 1, EndState: storage.Interrupted, Charges: map[string]string{r.ID.String(): string(c.AppendJSON(nil))}}
	j.Begin(record)
	must(t, j.Append(record, nil), l.Charge(ctx, r, 30), l.Release(ctx, r))
	again, err := Open(dir, j, zap.NewNop())
	must(t, err)
	again.detach()
	must(t, again.Recover(ctx))
	asked := 0
	_, err = again.Settle(ctx, func(_ credits.Reservation, charged plugins.Nanodollars) (plugins.Nanodollars, error) {
		asked++
		return charged, nil
	})
	must(t, err)
	if b, err := again.Balance(ctx, r.Holds[0]); err != nil || b.Spent != 30 || b.Reserved != 0 || asked != 1 {
		t.Errorf("%+v, %v, settled %d times; want 30 spent, and once, because the record was interrupted", b, err, asked)
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
