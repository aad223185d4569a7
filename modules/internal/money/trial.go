package money

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// Trial is what a budget would have refused of recorded calls, had it been there from From on. It
// sets aside what a call has used. A budget that refuses sets aside what a call may use at most,
// and so refuses these calls, and others that come near to the limit.
type Trial struct {
	From, To storage.Timestamp
	Calls    int64 // that the budget counts
	Refused  int64
	Unpriced int64 // of those refused, because the price is not known
	// Admitted and Spared are what the calls have used that the budget admits and refuses, as the
	// budget counts. Saved is what the refused calls have cost.
	Admitted, Spared, Saved plugins.Nanodollars
	Callers                 int // users, or keys of calls without a user, of refused calls
	Values                  int // of the budget's attribute that ran into the limit
}

// Refusal is a recorded call that a budget would have refused.
type Refusal struct {
	ID        uuid.UUID
	CreatedAt storage.Timestamp
	User      string
	Value     string              // of the budget's attribute
	Amount    plugins.Nanodollars // that the call used, as the budget counts
	Counted   plugins.Nanodollars // what the window had before
	Unpriced  bool
}

// Try returns what a budget would have refused of the calls that were recorded from a time up to
// another, the oldest first. Users, sessions and properties count as the records name them. It
// makes no call and counts nothing.
func (m *Budgets) Try(ctx context.Context, b *Budget, from, to storage.Timestamp, refused func(*Refusal)) (*Trial, error) {
	t := &trial{
		Trial: Trial{From: from, To: to}, budget: b, refused: refused,
		counts: make(map[credits.Account]plugins.Nanodollars), running: make(map[string][]storage.Timestamp),
		callers: make(map[string]bool), values: make(map[string]bool),
	}
	err := m.records(ctx, b, from, to, t.call)
	t.Callers, t.Values = len(t.callers), len(t.values)
	return &t.Trial, err
}

type trial struct {
	Trial
	budget  *Budget
	refused func(*Refusal)
	counts  map[credits.Account]plugins.Nanodollars
	swept   storage.Timestamp              // when counts last lost the windows that were over
	running map[string][]storage.Timestamp // when the calls end that run, by value
	callers map[string]bool
	values  map[string]bool
}

// call admits or refuses a call.
func (t *trial) call(r *storage.Record) {
	b := t.budget
	if r.GatewayNode == "" || r.TargetURL == "" || r.Subscription || r.Dialect.CountsTokens() { // no call that a budget could refuse
		return
	}
	t.Calls++
	amount, known := b.used(r)
	hold := b.hold(r, r.CreatedAt)
	counted := t.counted(hold, r.CreatedAt)
	switch {
	case known && counted+amount <= b.limit, !known && b.Unpriced == passUnpriced:
		t.Admitted += amount
		if b.quantity == concurrent {
			t.running[hold.Value] = append(t.running[hold.Value], r.CreatedAt+storage.Timestamp(r.Latency.N))
		} else {
			t.counts[hold.Account] += amount
		}
		return
	case !known:
		t.Unpriced++
	}
	t.Refused++
	t.Spared += amount
	t.Saved += r.Cost.N
	t.callers[callerOf(r)] = true
	t.values[hold.Value] = true
	t.refused(&Refusal{ID: r.ID, CreatedAt: r.CreatedAt, User: r.UserID, Value: hold.Value, Amount: amount, Counted: counted, Unpriced: !known})
}

// used is how much of what the budget counts a call has used. known is false for a call that the
// budget refuses because its price is not known.
func (b *Budget) used(r *storage.Record) (amount plugins.Nanodollars, known bool) {
	if !b.quantity.metered() {
		return 1, true
	}
	n := b.quantity.of(bound.Used{Cost: r.Cost, Usage: r.Usage})
	free := r.Status.N >= 400 // such a call states no usage
	return plugins.Nanodollars(n.N), n.Valid || free || b.quantity != dollars
}

// counted is what the window of a call has counted before it.
func (t *trial) counted(h credits.Hold, at storage.Timestamp) (sum plugins.Nanodollars) {
	if t.budget.quantity == concurrent {
		t.running[h.Value] = slices.DeleteFunc(t.running[h.Value], func(ends storage.Timestamp) bool { return ends <= at })
		return plugins.Nanodollars(len(t.running[h.Value]))
	}
	if h.Ends > 0 && t.swept < at {
		maps.DeleteFunc(t.counts, func(of credits.Account, _ plugins.Nanodollars) bool { return of.Ends <= at })
		t.swept = h.Ends
	}
	for of := range h.Steps {
		sum += t.counts[of]
	}
	return sum
}
