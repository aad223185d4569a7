package money

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
	"github.com/weirhq/weir/storage/journal"
)

// Trial is what a budget would have refused of recorded calls, had it been there from the first of
// them on. It sets aside what a call has used. A budget that refuses sets aside what a call may use at
// most, and so refuses these calls, and others that come near to the limit.
type Trial struct {
	Calls    int64 // that the budget counts
	Refused  int64
	Unpriced int64 // of those refused, because the price is not known
	// Admitted is what the admitted calls have used, and Spared what the refused calls have used, in
	// what the budget counts. Saved is the cost of the refused calls.
	Admitted, Spared, Saved plugins.Nanodollars

	budget  *Budget
	refused func(*Refusal)
	counts  map[credits.Account]plugins.Nanodollars
	swept   storage.Timestamp              // when counts last lost the windows that were over
	running map[string][]storage.Timestamp // when the calls end that run, by value
	callers map[string]bool
	values  map[string]bool
}

// TrialSummary is a trial as the API has it. Amounts are US dollars, or numbers of another quantity.
type TrialSummary struct {
	Name     string          `json:"name"`
	Quantity string          `json:"quantity"`
	Limit    json.RawMessage `json:"limit"`
	Window   string          `json:"window"`
	Per      *string         `json:"per"` // null if all calls share the limit
	Calls    int64           `json:"calls"`
	Refused  int64           `json:"refused"`
	Unpriced int64           `json:"unpriced"`
	Callers  int             `json:"callers"` // users, or keys of calls without a user, of refused calls
	Values   int             `json:"values"`  // of the budget's attribute that ran into the limit
	Admitted json.RawMessage `json:"admitted"`
	Spared   json.RawMessage `json:"spared"`
	Saved    plugins.Cost    `json:"saved_cost"`
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
	t := NewTrial(b, refused)
	err := m.eachRecord(ctx, b, from, to, (*journal.Journal).Scan, func(r *storage.Record) error {
		switch {
		case !bounded(r):
		case t.Fits(r):
			t.Admit(r)
		default:
			t.Refuse(r)
		}
		if t.Size() > MaxTrialSize {
			return ErrTrialTooLarge
		}
		return nil
	})
	return t, err
}

// Columns are the columns of a record that a trial of the budget reads, beside its usage and cost, its
// user, session, provider and model. ok is false if it reads more than columns.
func (b *Budget) Columns() (names []string, ok bool) {
	for leaf := range storage.Leaves(b.filter) {
		if leaf.Field.Column == nil {
			return nil, false
		}
	}
	_, ok = attributes[b.Per]
	return []string{"auth_hash", "gateway_node", "key_id", "latency", "project", "root", "status", "target_url"}, ok || b.Per == ""
}

// NewTrial returns a trial of a budget, which calls refused for each call that is refused. The calls
// are those of one organisation, in the order in which they were made.
func NewTrial(b *Budget, refused func(*Refusal)) *Trial {
	return &Trial{
		budget: b, refused: refused,
		counts: make(map[credits.Account]plugins.Nanodollars), running: make(map[string][]storage.Timestamp),
		callers: make(map[string]bool), values: make(map[string]bool),
	}
}

// MaxTrialSize bounds the Size of the trials of one question, which take about 200 bytes for each.
const MaxTrialSize = 500_000

// ErrTrialTooLarge is the error for trials whose Size is above MaxTrialSize.
var ErrTrialTooLarge = plugins.Invalid("", "the budgets would have to keep more than %d users, sessions or other values apart: ask about fewer calls, or by fewer budgets", MaxTrialSize)

// Size is how many values and callers the trial keeps apart.
func (t *Trial) Size() int { return len(t.counts) + len(t.running) + len(t.callers) + len(t.values) }

// bounded reports whether budgets bound a recorded call: the gateway has sent it, and it costs by use.
func bounded(r *storage.Record) bool {
	sent := r.GatewayNode != "" && r.TargetURL != ""
	return sent && !r.Subscription && r.Arm != routing.ShadowArm && !r.Dialect.CountsTokens()
}

// Counted returns the record by which the budget counts a recorded call r, nil if it does not count the
// call. byCreator is r with the creator of its key as the caller.
func (t *Trial) Counted(byCreator, r *storage.Record) *storage.Record {
	if !bounded(r) {
		return nil
	}
	return countedRecord(t.budget.program, byCreator, r)
}

// Fits reports whether the budget admits a call that it counts. It counts nothing.
func (t *Trial) Fits(r *storage.Record) bool {
	amount, known := t.budget.used(r)
	if !known {
		return t.budget.Unpriced == passUnpriced
	}
	return t.counted(t.budget.hold(r, r.CreatedAt), r.CreatedAt)+amount <= t.budget.limit
}

// Admit counts a call.
func (t *Trial) Admit(r *storage.Record) {
	t.Calls++
	amount, _ := t.budget.used(r)
	t.Admitted += amount
	hold := t.budget.hold(r, r.CreatedAt)
	if t.budget.quantity == concurrent {
		t.running[hold.Value] = append(t.running[hold.Value], r.CreatedAt+storage.Timestamp(r.Latency.N))
	} else {
		t.counts[hold.Account] += amount
	}
}

// Refuse counts a call that does not fit.
func (t *Trial) Refuse(r *storage.Record) {
	amount, known := t.budget.used(r)
	if !known {
		t.Unpriced++
	}
	t.Calls++
	t.Refused++
	t.Spared += amount
	t.Saved += r.Cost.N
	t.callers[callerOf(r)] = true
	hold := t.budget.hold(r, r.CreatedAt)
	t.values[hold.Value] = true
	t.refused(&Refusal{
		ID: r.ID, CreatedAt: r.CreatedAt, User: r.UserID, Value: hold.Value, Amount: amount, Counted: t.counted(hold, r.CreatedAt), Unpriced: !known,
	})
}

// Summary returns the trial as the API has it.
func (t *Trial) Summary() TrialSummary {
	b := t.budget
	s := TrialSummary{
		Name: b.Name, Quantity: b.Counts(), Limit: b.Amount(b.limit), Window: b.Window, Calls: t.Calls, Refused: t.Refused, Unpriced: t.Unpriced,
		Callers: len(t.callers), Values: len(t.values), Admitted: b.Amount(t.Admitted), Spared: b.Amount(t.Spared), Saved: plugins.KnownCost(t.Saved),
	}
	if b.Per != "" {
		s.Per = &b.Per
	}
	return s
}

// used returns how much of the budget's quantity a call has used. known is false for a call that the
// budget refuses because its price is not known.
func (b *Budget) used(r *storage.Record) (amount plugins.Nanodollars, known bool) {
	if !b.quantity.metered() {
		return 1, true
	}
	n := b.quantity.of(bound.Used{Cost: r.Cost, Usage: r.Usage})
	free := r.Status.N >= 400 // such a call states no usage
	return plugins.Nanodollars(n.N), n.Valid || free || b.quantity != dollars
}

// counted returns what the window of a call has counted before the call.
func (t *Trial) counted(h credits.Hold, at storage.Timestamp) (sum plugins.Nanodollars) {
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
