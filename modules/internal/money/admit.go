package money

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// Spending is what a call may spend at an account.
type Spending struct {
	Org string
	Key *access.Key
	// Account is the account that the call goes to. It is nil for a call that passes through a proxy
	// with the caller's own credentials: then Provider names the provider.
	Account  *providers.Account
	Provider string
	// Model is the name of the target at the account, "" unless a model is called.
	Model string
	// Batch has the models of a batch, whose calls the provider makes later. It is empty if the models
	// are unknown, and nil if the call is not a batch. A budget that counts one of the models counts
	// the whole batch.
	Batch []string
	// Files is true for a call about files or batches that a provider keeps. Such a call reaches only
	// the models in Names.
	Files bool
	// Names are the models that the calls of the batch name.
	Names []string
	// Record says whose call it is, and when the call began.
	Record *storage.Record
	// Limit is the caller's own limit of its calls, nil for none.
	Limit *Budget
	// Within is true for a part of a call that has a bill, such as a response in a WebSocket.
	Within bool
	// Shadow says that the operator makes the call beside that of a caller: no credits and no
	// budget count it.
	Shadow bool
	// Call is what a call of a model can use, nil for any other. Settle counts by it, and it is
	// the MaxUsage of a Spending that has none.
	Call *bound.Call
	// MaxUsage returns an upper bound on what the call uses if each of its answers has at most
	// limit tokens, 0 for as many as the request allows. The cost is unknown if there is no
	// price. It is called only if something bounds what the call uses.
	MaxUsage func(limit int64) bound.Used
	// Fit has the limits to which the request's own limit of output can be lowered.
	Fit bound.Limits
	// Cut has the limits at which the call's stream can be ended, for budgets that cut streams.
	Cut bound.Limits
}

// Admit returns the bill of a call, or a *plugins.Error that says why it has none.
func (m *Budgets) Admit(ctx context.Context, s Spending) (*Bill, error) {
	if s.MaxUsage == nil && s.Call != nil {
		s.MaxUsage = s.Call.MaxUsage
	}
	t := &Bill{budgets: m, account: s.Account, call: s.Call}
	if err := m.keys.Recheck(ctx, s.Key); err != nil { // it may have ended since the call began
		return nil, access.Ended()
	}
	if s.Account != nil {
		if err := s.allowed(); err != nil {
			return nil, err
		}
	}
	if s.Shadow {
		return t, nil
	}
	paid := m.PaysWithCredits(s.Org, s.Account)
	budgets, err := m.holdsFor(&s)
	if !paid && budgets == nil && err == nil {
		return t, nil
	}
	t.bounding = budgets
	if err == nil {
		err = m.count(ctx, t, s, paid)
	}
	if err == nil {
		return t, nil
	}
	if t.ledger != nil {
		err = errors.Join(err, t.Release(ctx))
	}
	if refusal, ok := errors.AsType[*plugins.Error](err); ok {
		return nil, refusal
	}
	if budgets != nil && !paid && len(budgets.enforced()) == 0 {
		m.Logger.Error("a call is missing in budgets that observe", zap.String("org", s.Org), zap.Error(err))
		return &Bill{budgets: m, account: s.Account, call: s.Call}, nil
	}
	m.Logger.Error("a call cannot be counted, and is not made", zap.String("org", s.Org), zap.Error(err))
	return nil, unavailable(err)
}

// count sets aside what a call may use, and counts it in the budgets that observe.
func (m *Budgets) count(ctx context.Context, t *Bill, s Spending, paid bool) error {
	ledger, err := m.Ledger(s.Org)
	if err != nil {
		return err
	}
	t.ledger = ledger
	for _, b := range t.bounding {
		err = errors.Join(err, m.Begin(ctx, ledger, b.budget))
	}
	if err == nil {
		err = m.setAside(ctx, t, s, paid)
	}
	if err == nil {
		err = m.observe(ctx, t, s)
	}
	if err != nil || s.Call == nil {
		return err
	}
	t.max = s.Call.MaxUsage(t.limit())
	if unknown := s.Call.Unknown(); unknown != nil {
		m.Logger.Warn("a budget counts options of a request by their bytes, because Weir does not know what they do",
			zap.String("org", s.Org), zap.String("model", s.Model), zap.Strings("options", unknown))
	}
	return nil
}

// setAside reserves what a call may use, of each quantity that something bounds. After an
// error, the bill has what was reserved before.
func (m *Budgets) setAside(ctx context.Context, t *Bill, s Spending, paid bool) error {
	for _, q := range quantities {
		if err := m.setAsideShare(ctx, t, q, s, paid && q == dollars); err != nil {
			return err
		}
	}
	return nil
}

// setAsideShare reserves a share of a quantity, from the credits too if they pay for the call.
func (m *Budgets) setAsideShare(ctx context.Context, t *Bill, q *quantity, s Spending, paid bool) error {
	bounding := t.bounding.byQuantity(q)
	if bounding == nil && !paid {
		return nil
	}
	part := &share{quantity: q}
	// The record's id may be the client's choice, and used elsewhere at the same time.
	part.ID, part.Org, part.Call = uuid.New(), s.Org, s.entry(m.Mask(s.Org, mask.Content{}))
	if paid {
		part.Holds = append(part.Holds, credits.Hold{Account: credits.Account{Org: s.Org}})
	}
	for _, b := range bounding {
		part.Holds = append(part.Holds, b.hold)
	}
	amount := q.max(&s, t.limit()) // another quantity may have lowered the call
	if !amount.Valid {
		bounding = slices.DeleteFunc(bounding.enforced(), func(b budgetHold) bool { return b.budget.Unpriced == passUnpriced })
		if paid || len(bounding) > 0 {
			return notPriced(s, bounding)
		}
		return nil
	}
	part.set(amount)
	if s.Batch != nil && part.metered() && amount.N > 0 {
		if t.batch == uuid.Nil {
			t.batch = uuid.New()
		}
		part.ID, part.Until = batchShare(t.batch, part.quantity), batchUntil(s.Record.CreatedAt)
	}
	if err := m.reserve(ctx, t, part, s); err != nil {
		return err
	}
	if len(part.Holds) == 0 {
		return nil
	}
	t.shares = append(t.shares, part)
	if part.quantity == requestCount {
		return t.charge(ctx, part, 1)
	}
	return nil
}

// entry returns what the ledger has of the call, with its names masked.
func (s *Spending) entry(names *mask.Masker) credits.Call {
	r := s.Record
	c := credits.Call{
		ID: r.ID, CreatedAt: r.CreatedAt, AuthHash: r.AuthHash, KeyID: r.KeyID, Project: r.Project, UserID: names.Name(r.UserID, nil), SessionID: names.Name(r.SessionID, nil),
	}
	if c.Provider, c.Model = s.target(); r.Cost.Valid {
		c.Spent = r.Cost.N
	}
	return c
}

// allowed refuses what the key may not call.
func (s *Spending) allowed() error {
	provider, model := s.target()
	switch {
	case !s.Files && !s.Key.MayCall(provider, model):
		return access.NotAllowed(cmp.Or(s.Model, provider))
	case s.Files && !s.Key.MayUse(provider):
		return access.NotAllowed(provider)
	case s.Batch != nil && len(s.Names) == 0 && !s.Key.MayCall(provider, ""):
		return access.NotAllowed("the models of a batch whose calls are not known")
	}
	for _, name := range s.Names {
		if !s.Key.MayCall(provider, name) {
			return access.NotAllowed(name)
		}
	}
	return nil
}

// target returns the label or the name of the provider, and the model there.
func (s *Spending) target() (provider, model string) {
	if s.Account == nil {
		return s.Provider, s.Model
	}
	return s.Account.Label, strings.TrimPrefix(s.Model, s.Account.Label+"/")
}

// Bounds reports whether credits or a budget that refuses bound what a call may use.
func (m *Budgets) Bounds(s Spending) bool {
	bounding, err := m.holdsFor(&s)
	return err != nil || m.PaysWithCredits(s.Org, s.Account) || slices.ContainsFunc(bounding, func(b budgetHold) bool { return b.budget.quantity.metered() && !b.budget.Observe })
}

// HeldInterval is how often a call that waits looks whether calls in flight have ended.
const HeldInterval = 20 * time.Millisecond

// reserve sets a share of a bill aside. If other calls hold what is missing, or if it leaves
// a rolling window soon enough, the call waits as long as the budget says. A call for which
// others hold too much is then fitted into what they leave.
func (m *Budgets) reserve(ctx context.Context, t *Bill, part *share, s Spending) error {
	began, waited := time.Now(), false
	for {
		short, reserved, err := m.tryReserve(ctx, t, part, s, waited)
		if full, ok := errors.AsType[*credits.FullError](err); ok {
			b := t.bounding.budgetOf(full.Account)
			if !b.Observe {
				return refuseValue(b)
			}
			m.Logger.Warn("a budget that observes counts no more values", zap.String("org", s.Org), zap.String("budget", b.Name))
			part.Holds = slices.DeleteFunc(part.Holds, func(h credits.Hold) bool { return h.Account == full.Account })
			if len(part.Holds) == 0 {
				return nil
			}
			continue
		}
		if short == nil {
			return err
		}
		b := t.bounding.budgetOf(short.Account)
		if b == nil || waited || ctx.Err() != nil || !reserved && short.FreeAt == 0 {
			return refuse(part, short, b, reserved)
		}
		pause, remaining := HeldInterval, time.Duration(b.Wait)-time.Since(began)
		if !reserved {
			if pause = time.Until(short.FreeAt.Time()); pause > remaining {
				return refuse(part, short, b, reserved)
			}
		} else if waited = remaining <= 0; waited {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		t.move(part, storage.Millis(time.Now()))
	}
}

// tryReserve sets a share aside, or returns the account that is short, and whether other
// calls hold what is missinm. The call is lowered to what is left only if waiting for other
// calls would not help, or if the call has waited.
func (m *Budgets) tryReserve(ctx context.Context, t *Bill, part *share, s Spending, waited bool) (short *credits.InsufficientError, reserved bool, err error) {
	r, holds := &part.Reservation, part.Holds
	r.Holds = part.reducedHolds(s, t.bounding)
	for range len(r.Holds) + 2 { // each account may be short once, and the first without what is spared
		r.Lost = part.maxLost()
		err = t.ledger.Reserve(ctx, *r)
		if errors.As(err, &short) && short.Budget == "" && short.Granted == 0 { // the first grant is yet to come
			if err = m.seed(ctx, t.ledger, r.Org); err == nil {
				err = t.ledger.Reserve(ctx, *r)
			}
		}
		if !errors.As(err, &short) {
			return nil, false, err
		}
		b := t.bounding.budgetOf(short.Account)
		if b != nil {
			short.Granted = b.limit
		}
		spared := short.Available() >= r.Amount
		r.Holds = holds
		lower := lowering{t, part, &s, b}
		unspent := short.Granted - short.Spent
		switch {
		case b != nil && b.Wait == 0 && lower.to(b.portion(short)), spared:
		case unspent >= r.Amount && (!waited || !lower.possible()):
			return short, true, nil
		case !lower.possible():
			return short, false, nil
		case !lower.to(short.Available()):
			_, _, fits := lower.limits(unspent)
			return short, unspent >= r.Amount || fits, nil
		}
		part.set(part.quantity.max(&s, t.limit()))
	}
	return short, true, nil // calls came between
}

// reducedHolds returns the holds of a share. If the call can be lowered, a twentieth of each limit
// stays free of it for calls that are lowered: else a few that ask for far more than they
// write hold all that is left, and others are refused.
func (part *share) reducedHolds(s Spending, budgets budgetHolds) []credits.Hold {
	if s.Fit == (bound.Limits{}) || !part.metered() {
		return part.Holds
	}
	holds, budgets := slices.Clone(part.Holds), budgets.byQuantity(part.quantity)
	first := len(holds) - len(budgets) // after that of the credits
	for i, b := range budgets {
		if b.budget.Wait == 0 {
			holds[first+i].Limit -= b.budget.limit / 20
		}
	}
	return holds
}

// portion is the share of the remaining budget to which a call is reduced if the budget has no
// Wait: an eighth leaves room for 20 calls at once, and half is enough for a call that is alone.
func (b *Budget) portion(left *credits.InsufficientError) plugins.Nanodollars {
	if left.Reserved == 0 {
		return left.Available() / 2
	}
	return left.Available() / 8
}

// lowering lowers the output of a call to what is left in a budget, or in the credits if the
// budget is nil.
type lowering struct {
	*Bill
	part   *share
	call   *Spending
	budget *Budget
}

// possible reports whether the call can be lowered at all.
func (l lowering) possible() bool {
	return l.part.metered() && (l.call.Fit != bound.Limits{} || l.call.Cut != bound.Limits{} && l.budget != nil && l.budget.Cut)
}

// limits returns the limit of the request, or the limit at which the stream is ended, with which
// the call uses no more than what is left. ok is false if no limit is low enough.
func (l lowering) limits(remaining plugins.Nanodollars) (fitted, cutAt int64, ok bool) {
	if !l.possible() {
		return 0, 0, false
	}
	covered := func(limit int64) bool {
		n := l.part.of(l.call.MaxUsage(limit))
		return n.Valid && plugins.Nanodollars(n.N) <= remaining
	}
	if fitted = l.call.Fit.Below(l.limit()).Highest(covered); fitted > 0 {
		return fitted, l.CutAt, true
	}
	if l.budget != nil && l.budget.Cut {
		cutAt = l.call.Cut.Below(l.limit()).Highest(covered)
	}
	return l.Fitted, cutAt, cutAt > 0
}

// to lowers the call so that it uses no more than what is left, and reports whether it can.
func (l lowering) to(remaining plugins.Nanodollars) bool {
	fitted, cutAt, ok := l.limits(remaining)
	if ok {
		l.Fitted, l.CutAt = fitted, cutAt
	}
	return ok
}
