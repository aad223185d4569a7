package money

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
)

// beginTimeout bounds how long Begin adds up records before the first call of a budget.
const beginTimeout = 10 * time.Minute

// errBeginning refuses a call while Begin adds up records for a budget.
var errBeginning = fmt.Errorf("%w: the records are added up with which a budget begins", credits.ErrUnavailable)

// verifiedFields are the fields and attributes that no caller can set: their values in a record are
// those by which a budget without Trust counted the call. The model is none of them, because
// a record has the model that answered.
var verifiedFields = []string{"", "project", "key_id", "provider", "request_model", "key", "tree"}

// provisionSince parses Since, and checks that the budget can count records.
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
		if !slices.Contains(verifiedFields, name) && (!b.Trust || name == "model") {
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

// Begin charges a new budget with the cost of the records since the time in Since, once. A Begin that
// was interrupted by a crash is completed by the next one.
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
	account := b.hold(new(storage.Record), now)
	account.Value, account.Limit = "", math.MaxInt64
	h := history{ledger, account}
	to, err := h.end(ctx, now)
	if err != nil {
		return err
	}
	if from := max(b.since, account.Begins); from < to {
		if err := m.chargeHistory(ctx, b, h, from, to); err != nil {
			return err
		}
	}
	b.begun.Store(true)
	return nil
}

// chargeHistory charges the cost of the records in [from, to) to the accounts of the budget, unless
// they are charged already.
func (m *Budgets) chargeHistory(ctx context.Context, b *Budget, h history, from, to storage.Timestamp) error {
	done := h.mark("done")
	if balance, err := h.ledger.Balance(ctx, done); err != nil || balance.Spent != 0 {
		return err
	}
	costs, err := m.recordedCosts(ctx, b, from, to)
	if err != nil {
		return err
	}
	for value, cost := range costs {
		account, charged := h.account, h.mark("value")
		account.Value, charged.Value = value, value
		if _, err := chargeOnce(ctx, h.ledger, cost, charged, account); err != nil {
			return err
		}
	}
	_, err = chargeOnce(ctx, h.ledger, 1, done)
	return err
}

// recordedCosts returns the cost of the records in [from, to) that a budget counts, by the value of
// the budget's attribute.
func (m *Budgets) recordedCosts(ctx context.Context, b *Budget, from, to storage.Timestamp) (map[string]plugins.Nanodollars, error) {
	costs := make(map[string]plugins.Nanodollars)
	// One budget begins at a time, and calls wait for it: scans of others do not refuse or delay it.
	err := m.eachRecord(ctx, b, from, to, (*journal.Journal).ScanNow, func(r *storage.Record) error {
		if r.Cost.N > 0 {
			costs[b.hold(r, r.CreatedAt).Value] += r.Cost.N
		}
		return nil
	})
	return costs, err
}

// history is what the ledger knows of the records with which a budget begins. It keeps marks:
// accounts beside the budget's, each charged in one reservation with what it stands for.
//
//	first  charged by the one node that decides when the budget began
//	time   its value is when the budget began; charged together with first
//	value  charged together with the budget's account of the same value
//	done   charged when all values are
type history struct {
	ledger  credits.Ledger
	account credits.Hold // the budget's in the current window, without a value and without a limit
}

// mark returns the account of a mark.
func (h history) mark(name string) credits.Hold {
	mark := h.account
	mark.Budget += "\nsince " + name
	return mark
}

// end returns when the history ends: when the budget began to count calls. That is now, unless the
// ledger has an earlier time. It is 0 for a budget that counted calls before it had Since.
func (h history) end(ctx context.Context, now storage.Timestamp) (storage.Timestamp, error) {
	first, began := h.mark("first"), h.mark("time")
	first.Begins, first.Ends, began.Begins, began.Ends = 0, 0, 0, 0
	times, err := h.ledger.Counted(ctx, began)
	if err != nil {
		return 0, err
	}
	if len(times) == 0 {
		counted, err := h.ledger.Counted(ctx, h.account)
		if err != nil {
			return 0, err
		}
		if len(counted) > 0 {
			now = 0
		}
		began.Value = now.String()
		switch charged, err := chargeOnce(ctx, h.ledger, 1, first, began); {
		case err != nil:
			return 0, err
		case charged:
			return now, nil
		}
		if times, err = h.ledger.Counted(ctx, began); err != nil {
			return 0, err
		}
	}
	if len(times) == 0 { // another node is about to charge it
		return 0, errBeginning
	}
	return storage.ParseTimestamp(times[0].Value)
}
