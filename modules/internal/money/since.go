package money

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
)

// beginTimeout bounds how long records are added up before the first call of a budget.
const beginTimeout = 10 * time.Minute

// sincePage is how many records a query reads for a budget.
const sincePage = 1000

// errBeginning is the error for a call of a budget whose records are added up.
var errBeginning = fmt.Errorf("%w: the records are added up with which a budget begins", credits.ErrUnavailable)

// vouchedBefore are the fields and the attributes that records tell as calls do, though no
// caller is trusted. The model of a record is the one that answered.
var vouchedBefore = []string{"", "project", "key_id", "provider", "request_model", "key", "tree"}

// provisionSince reads the time from which records count.
func (b *Budget) provisionSince() error {
	if b.Since == "" {
		return nil
	}
	if b.quantity != dollars || b.rolling > 0 {
		return errors.New("since is for US dollars in a window of the calendar or without an end")
	}
	names := []string{b.Per}
	for leaf := range storage.Leaves(b.filter) {
		names = append(names, leaf.Field.Name)
	}
	for _, name := range names {
		if !slices.Contains(vouchedBefore, name) && (!b.Trust || name == "model") {
			return fmt.Errorf("since: records do not tell the %s as a call does that nobody trusts; say trust, or leave since out", name)
		}
	}
	zone, err := time.LoadLocation(b.Timezone)
	if err != nil {
		return err
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.ParseInLocation(layout, b.Since, zone); err == nil {
			b.since, b.begun = storage.Millis(at), new(atomic.Bool)
			return nil
		}
	}
	return fmt.Errorf("since is a day such as 2026-11-01 or a time such as 2026-11-01T12:00:00Z, not %q", b.Since)
}

// Begin charges a new budget what the records have cost since the time that the budget names,
// once. The ledger remembers for ever when the budget began, and in the accounts of a window
// what was charged so: a crash repeats what is missing alone.
func (m *Budgets) Begin(ctx context.Context, ledger credits.Ledger, b *Budget) error {
	if b.since == 0 || b.begun.Load() {
		return nil
	}
	if !m.beginning.TryLock() {
		return errBeginning
	}
	defer m.beginning.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), beginTimeout)
	defer cancel()
	now := storage.Millis(time.Now())
	of := b.hold(new(storage.Record), now)
	of.Value, of.Limit = "", math.MaxInt64
	mark := func(name string) credits.Hold {
		h := of
		h.Budget += "\nsince " + name
		return h
	}
	to, err := beginningOf(ctx, ledger, of, mark("first"), mark("time"), now)
	if err != nil {
		return err
	}
	from := max(b.since, of.Begins)
	done := mark("done")
	if from < to {
		switch ended, err := ledger.Balance(ctx, done); {
		case err != nil:
			return err
		case ended.Spent == 0:
			sums, err := m.costs(ctx, b, from, to)
			if err != nil {
				return err
			}
			for value, cost := range sums {
				account, charged := of, mark("value")
				account.Value, charged.Value = value, value
				if _, err := chargeOnce(ctx, ledger, cost, charged, account); err != nil {
					return err
				}
			}
			if _, err := chargeOnce(ctx, ledger, 1, done); err != nil {
				return err
			}
		}
	}
	b.begun.Store(true)
	return nil
}

// beginningOf returns when a budget began: now, unless the ledger has another time, as the value of an
// account that is charged together with first. A budget that has counted before began at 0.
func beginningOf(ctx context.Context, ledger credits.Ledger, of, first, at credits.Hold, now storage.Timestamp) (storage.Timestamp, error) {
	first.Begins, first.Ends, at.Begins, at.Ends = 0, 0, 0, 0
	balances, err := ledger.Counted(ctx, at)
	if err != nil {
		return 0, err
	}
	if len(balances) == 0 {
		counted, err := ledger.Counted(ctx, of)
		if err != nil {
			return 0, err
		}
		if len(counted) > 0 {
			now = 0
		}
		at.Value = now.String()
		switch first, err := chargeOnce(ctx, ledger, 1, first, at); {
		case err != nil:
			return 0, err
		case first:
			return now, nil
		}
		if balances, err = ledger.Counted(ctx, at); err != nil {
			return 0, err
		}
	}
	if len(balances) == 0 { // another node is about to charge it
		return 0, errBeginning
	}
	return storage.ParseTimestamp(balances[0].Value)
}

// chargeOnce charges an amount to accounts, unless the first has been charged before. It reports
// whether it has charged them.
func chargeOnce(ctx context.Context, ledger credits.Ledger, amount plugins.Nanodollars, holds ...credits.Hold) (first bool, err error) {
	holds[0].Limit = amount
	if err = chargeNow(ctx, ledger, amount, holds...); errors.Is(err, credits.ErrInsufficient) {
		return false, nil
	}
	return err == nil, err
}

// chargeNow charges an amount to accounts.
func chargeNow(ctx context.Context, ledger credits.Ledger, amount plugins.Nanodollars, holds ...credits.Hold) error {
	r := credits.Reservation{ID: uuid.New(), Org: holds[0].Org, Amount: amount, Holds: holds}
	if err := ledger.Reserve(ctx, r); err != nil {
		return err
	}
	return errors.Join(ledger.Charge(ctx, r, amount), ledger.Release(ctx, r))
}

// costs are what the records that a budget counts have cost from a time up to another, by the
// value of the budget.
func (m *Budgets) costs(ctx context.Context, b *Budget, from, to storage.Timestamp) (map[string]plugins.Nanodollars, error) {
	sums := make(map[string]plugins.Nanodollars)
	// One budget begins at a time, and calls wait for it: scans of others do not refuse or delay it.
	err := m.records(ctx, b, from, to, (*journal.Journal).ScanNow, func(r *storage.Record) error {
		if r.Cost.N > 0 {
			sums[b.hold(r, r.CreatedAt).Value] += r.Cost.N
		}
		return nil
	})
	return sums, err
}

// scan is one of the scans of a journal.
type scan = func(*journal.Journal, context.Context, *storage.RequestQuery, func([]*storage.Record) error) error

// records calls each for the records that a budget counts from a time up to another, the oldest
// first, by a scan of the journal. As in calls, who created a key as their own is the caller of its
// calls, and stays so when the key is deleted.
func (m *Budgets) records(ctx context.Context, b *Budget, from, to storage.Timestamp, scan scan, each func(*storage.Record) error) error {
	store, err := m.store(b.org)
	if err != nil {
		return err
	}
	j, err := store.Journal()
	if err == nil {
		err = j.Flush(ctx)
	}
	if err != nil {
		return err
	}
	creators, err := m.Creators(b.org)
	if err != nil {
		return err
	}
	created := storage.LookupField(storage.RequestResponse, "request_created_at")
	page := &storage.RequestQuery{
		Org: b.org, Sort: []storage.Sort{{Key: storage.SortCreatedAt}}, Limit: sincePage,
		Filter: storage.And(storage.And(without(b.filter, "key_id"), &storage.Leaf{Field: created, Op: storage.GTE, Time: from}), &storage.Leaf{Field: created, Op: storage.LT, Time: to}),
	}
	return scan(j, ctx, page, func(records []*storage.Record) error {
		for _, r := range records {
			if r.Arm == routing.ShadowArm { // which no budget counts
				continue
			}
			as, err := creators.AsCaller(ctx, r)
			if err != nil {
				return err
			}
			if as = asCounted(b.takes, as, r); as == nil {
				continue
			}
			if err := each(as); err != nil {
				return err
			}
		}
		return nil
	})
}
