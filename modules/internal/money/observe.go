package money

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// A budget that observes counts every call in its own account, so that it can begin to refuse at
// any time. What it counts of calls that it would have refused is in a second account as well,
// the surplus: its own account without the surplus is what the budget would have counted if it
// had refused.
const (
	surplusMark = "\nsurplus"
	// refusedMark ends the name of the account that counts calls that a budget would have
	// refused, by their callers.
	refusedMark = "\nrefused"
)

// marked is an account beside that of a budget.
func (b *Budget) marked(h credits.Hold, mark string) credits.Hold {
	h.Budget += mark
	h.Limit = math.MaxInt64
	return h
}

// observe finds out whether the budgets that observe would have refused or lowered the call, and
// counts in their surplus what they would not have admitted. A call that one budget would have
// refused is surplus in all, as a call that is refused counts in none.
func (m *Budgets) observe(ctx context.Context, t *Bill, s Spending) error {
	if !slices.ContainsFunc(t.bounding, func(b budgetHold) bool { return b.budget.Observe }) {
		return nil
	}
	judged := &Bill{ledger: t.ledger, shares: t.shares, bounding: t.bounding, Fitted: t.Fitted, CutAt: t.CutAt}
	by, err := judged.refusedBy(ctx, &s)
	if err != nil {
		return err
	}
	if by != nil {
		t.WouldRefuse = by.budget.Name
		budgetWouldRefuse.With(by.budget.label).Inc()
		of := by.budget.marked(by.hold, refusedMark)
		of.Value = by.caller
		if err := chargeNow(ctx, t.ledger, 1, of); err != nil && !errors.Is(err, credits.ErrFull) {
			return err
		}
	} else if judged.limit() == t.limit() {
		return nil
	}
	for _, part := range slices.Clip(t.shares) {
		admitted := plugins.Nanodollars(0)
		if by == nil {
			admitted = min(part.Amount, plugins.Nanodollars(part.quantity.max(&s, judged.limit()).N))
		}
		if err := t.setAsideSurplus(ctx, part, admitted); err != nil {
			return err
		}
	}
	return nil
}

// setAsideSurplus reserves in the surplus of budgets what they would not have admitted of a share.
func (t *Bill) setAsideSurplus(ctx context.Context, part *share, admitted plugins.Nanodollars) error {
	surplus := &share{quantity: part.quantity, surplus: true, admitted: admitted}
	surplus.ID, surplus.Org, surplus.Call = uuid.New(), part.Org, part.Call
	for _, b := range t.bounding.byQuantity(part.quantity) {
		if b.budget.Observe && slices.Contains(part.Accounts(), b.hold.Account) {
			surplus.Holds = append(surplus.Holds, b.budget.marked(b.hold, surplusMark))
		}
	}
	if surplus.Holds == nil || part.Amount == admitted {
		return nil
	}
	surplus.set(plugins.Known(int64(part.Amount - admitted)))
	if surplus.Lost = surplus.maxLost(); part.outlives() {
		surplus.ID, surplus.Until = surplusShare(t.batch, part.quantity), part.Until
	}
	if err := t.ledger.Reserve(ctx, surplus.Reservation); err != nil {
		return err
	}
	t.shares = append(t.shares, surplus)
	if part.quantity == requestCount {
		return t.charge(ctx, surplus, 1)
	}
	return nil
}

// refusedBy returns the first budget that would have refused the call, nil for none. It lowers t as
// the budgets would have lowered the call. Of calls that are judged at the same moment, each counts
// the others.
func (t *Bill) refusedBy(ctx context.Context, s *Spending) (*budgetHold, error) {
	for _, q := range quantities {
		i := slices.IndexFunc(t.shares, func(part *share) bool { return part.quantity == q })
		for _, b := range t.bounding.byQuantity(q) {
			switch {
			case !b.budget.Observe:
			case i >= 0:
				admits, err := t.admits(ctx, t.shares[i], b, s)
				if err != nil || !admits {
					return &b, err
				}
			case b.budget.Unpriced != passUnpriced && !q.max(s, t.limit()).Valid:
				return &b, nil
			}
		}
	}
	return nil, nil
}

// admits reports whether a budget that observes would have admitted a share, and lowers t to what
// the budget would have admitted. It decides as tryReserve does for a budget without Wait.
func (t *Bill) admits(ctx context.Context, part *share, b budgetHold, s *Spending) (bool, error) {
	counted, err := t.ledger.Balance(ctx, b.hold)
	if err != nil {
		return false, err
	}
	surplus, err := t.ledger.Balance(ctx, b.budget.marked(b.hold, surplusMark))
	if err != nil {
		return false, err
	}
	rest := &credits.InsufficientError{Balance: credits.Balance{
		Granted: b.budget.limit, Spent: counted.Spent - surplus.Spent, Reserved: counted.Reserved - surplus.Reserved,
	}}
	if part.quantity == requestCount { // it is charged already
		rest.Spent -= part.Amount
	} else {
		rest.Reserved -= part.Amount
	}
	amount := part.Amount
	if t.Fitted != 0 || t.CutAt != 0 {
		amount = min(amount, plugins.Nanodollars(part.quantity.max(s, t.limit()).N))
	}
	spared := plugins.Nanodollars(0)
	if s.Fit != (bound.Limits{}) && part.metered() {
		spared = b.budget.limit / 20
	}
	lower := lowering{t, part, s, b.budget}
	return amount <= rest.Available()-spared || lower.to(b.budget.portion(rest)) || amount <= rest.Available() || lower.to(rest.Available()), nil
}

// Refusals is how many calls a budget that observes would have refused in the present window, and
// how many users and keys made them.
type Refusals struct {
	Calls   int64 `json:"calls"`
	Callers int   `json:"callers"`
}

// WouldRefuse returns what the budget would have refused, nil for a budget that refuses.
func (b *Budget) WouldRefuse(ctx context.Context, ledger credits.Ledger) (*Refusals, error) {
	if !b.Observe {
		return nil, nil //nolint:nilnil // a budget that refuses has no such number
	}
	callers, err := ledger.Counted(ctx, b.marked(b.hold(new(storage.Record), storage.Millis(time.Now())), refusedMark))
	if err != nil {
		return nil, err
	}
	refusals := &Refusals{Callers: len(callers)}
	for _, caller := range callers {
		refusals.Calls += int64(caller.Spent)
	}
	return refusals, nil
}

var budgetWouldRefuse = metric.NewCounters("weir_budget_would_refuse_total", "Calls that a budget that observes would have refused.", "budget")
