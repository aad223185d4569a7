package money

import (
	"cmp"
	"slices"
	"sync"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// budgetHold is a budget that counts a call, with its account for the call.
type budgetHold struct {
	budget *Budget
	hold   credits.Hold
	// caller is the user or the key that makes the call, for a budget that observes; "" for others.
	caller string
}

// budgetHolds are the budgets that count a call.
type budgetHolds []budgetHold

// enforced returns the budgets that do not only observe.
func (all budgetHolds) enforced() budgetHolds {
	return slices.DeleteFunc(slices.Clone(all), func(b budgetHold) bool { return b.budget.Observe })
}

// holdsFor returns the budgets that count a call.
func (m *Budgets) holdsFor(s *Spending) (all budgetHolds, err error) {
	budgets, err := m.Of(s.Org)
	if s.Limit != nil {
		budgets = append(slices.Clip(budgets), s.Limit)
	}
	if err != nil || len(budgets) == 0 {
		return nil, err
	}
	v := viewPool.Get().(*view) //nolint:forcetypeassert // the pool has nothing else
	defer v.free()
	v.full = *s.Record
	v.full.Provider, v.full.Model = s.target()
	if s.Account != nil {
		v.full.Provider = s.Account.Provider
	}
	if len(s.Batch) == 0 {
		return m.addHolds(v, s, budgets, nil)
	}
	for _, model := range s.Batch {
		v.full.Model, v.full.RequestModel = model, model
		if all, err = m.addHolds(v, s, budgets, all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// view is a call as budgets see it: full has all that is known of the call, and verified lacks
// the claims of the caller.
type view struct{ full, verified storage.Record }

// viewPool saves allocations: most calls are counted by no budget.
var viewPool = sync.Pool{New: func() any { return new(view) }}

// free gives the view back to the pool.
func (v *view) free() {
	*v = view{}
	viewPool.Put(v)
}

// callerOf returns the user who makes a call, or the key of a call without a user.
func callerOf(r *storage.Record) string { return cmp.Or(r.UserID, r.KeyID, r.AuthHash) }

// addHolds appends the budgets that count a call to all, each account once.
func (m *Budgets) addHolds(v *view, s *Spending, budgets []*Budget, all budgetHolds) (budgetHolds, error) {
	v.verified = v.full
	s.Key.ClearClaims(&v.verified)
	earlier := len(all) // holds of the earlier models of a batch
	for _, b := range budgets {
		if b.quantity == concurrent && s.Within {
			continue
		}
		program := b.program
		if s.Batch != nil && len(s.Batch) == 0 { // a batch whose models nobody knows may be of any
			program = storage.Compile(dropConditions(b.filter, "model", "request_model"), nil)
		}
		r := b.countedAs(program, s.Key, &v.full, &v.verified)
		if r == nil {
			continue
		}
		h := m.hold(b, r, v.full.CreatedAt)
		// Only these can find their account again: another model of the batch, or a limit for each caller of
		// the same name.
		if (earlier > 0 || b.callerLimit != nil) && all.budgetOf(h.Account) != nil {
			continue
		}
		if b.callerLimit != nil {
			if err := m.callers.admit(h); err != nil {
				return nil, err
			}
		}
		own := budgetHold{budget: b, hold: h}
		if b.Observe {
			own.caller = callerOf(r)
		}
		all = append(all, own)
	}
	return all, nil
}

// byQuantity returns the budgets of a quantity.
func (all budgetHolds) byQuantity(q *quantity) (list budgetHolds) {
	for _, b := range all {
		if b.budget.quantity == q {
			list = append(list, b)
		}
	}
	return list
}

// budgetOf returns the budget of an account, nil for the account of the credits.
func (all budgetHolds) budgetOf(account credits.Account) *Budget {
	for _, b := range all {
		if b.hold.Account == account {
			return b.budget
		}
	}
	return nil
}

// dropConditions returns f without its conditions on some fields, so that it matches whatever these
// fields are.
func dropConditions(f storage.Filter, fields ...string) storage.Filter {
	switch f := f.(type) {
	case *storage.Branch:
		return &storage.Branch{Or: f.Or, Left: dropConditions(f.Left, fields...), Right: dropConditions(f.Right, fields...)}
	case *storage.Leaf:
		if slices.Contains(fields, f.Field.Name) {
			return storage.All{}
		}
	}
	return f
}

// countedAs returns the record by which the budget counts a call of a key, nil if the budget's filter,
// compiled to program, does not match the call. full and verified are those of a view.
func (b *Budget) countedAs(program *storage.Program, k *access.Key, full, verified *storage.Record) *storage.Record {
	r := verified
	if b.Trust {
		r = full
	}
	return countedRecord(program, k.AsCreator(r), r)
}

// countedRecord returns byCreator, which is the record r with the creator of its key as the caller.
// It returns nil if the filter of a budget matches neither of the two: it may name the key or the creator.
// The filter sees no content: a call is counted before it is made.
func countedRecord(program *storage.Program, byCreator, r *storage.Record) *storage.Record {
	if !program.Match(byCreator, nil) && (byCreator == r || !program.Match(r, nil)) {
		return nil
	}
	return byCreator
}
