package money

import (
	"cmp"
	"slices"
	"sync"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// budgetHolds are the budgets that count a call, each with its account.
type budgetHolds []budgetHold

type budgetHold struct {
	budget *Budget
	hold   credits.Hold
	// caller is the user or the key whose call it is, for a budget that observes.
	caller string
}

// enforced returns the budgets that do not only observe.
func (all budgetHolds) enforced() budgetHolds {
	return slices.DeleteFunc(slices.Clone(all), func(b budgetHold) bool { return b.budget.Observe })
}

// budgetHolds returns the budgets that count a call.
func (m *Budgets) budgetHolds(s *Spending) (all budgetHolds, err error) {
	budgets, err := m.Of(s.Org)
	if s.Limit != nil {
		budgets = append(slices.Clip(budgets), s.Limit)
	}
	if err != nil || len(budgets) == 0 {
		return nil, err
	}
	v := views.Get().(*view) //nolint:forcetypeassert // views has nothing else
	defer v.forget()
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

// view is a call as budgets judge it: by all that is known of the call, and by what the caller
// alone cannot say.
type view struct{ full, vouched storage.Record }

// views are used again: a call that no budget counts takes no memory to find that out.
var views = sync.Pool{New: func() any { return new(view) }}

// callerOf is who makes a call: the user, or the key of a call without one.
func callerOf(r *storage.Record) string { return cmp.Or(r.UserID, r.KeyID, r.AuthHash) }

// forget gives the view back.
func (v *view) forget() {
	*v = view{}
	views.Put(v)
}

// addHolds adds those of some budgets that count a call, each account once.
func (m *Budgets) addHolds(v *view, s *Spending, budgets []*Budget, all budgetHolds) (budgetHolds, error) {
	v.vouched = v.full
	s.Key.ClearClaims(&v.vouched)
	counted := len(all) // by the earlier models of a batch
	for _, b := range budgets {
		if b.quantity == concurrent && s.Within {
			continue
		}
		takes := b.takes
		if s.Batch != nil && len(s.Batch) == 0 {
			takes = storage.Compile(without(b.filter, "model", "request_model"), nil)
		}
		r := b.counts(takes, s.Key, &v.full, &v.vouched)
		if r == nil {
			continue
		}
		h := m.hold(b, r, v.full.CreatedAt)
		if (counted > 0 || b.callerLimit != nil) && all.find(h.Account) != nil { // the names of other budgets differ
			continue
		}
		if b.callerLimit != nil {
			if err := m.callers.admit(h); err != nil {
				return nil, err
			}
		}
		of := budgetHold{budget: b, hold: h}
		if b.Observe {
			of.caller = callerOf(r)
		}
		all = append(all, of)
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

// find returns the budget of an account, nil for the credits.
func (all budgetHolds) find(account credits.Account) *Budget {
	for _, b := range all {
		if b.hold.Account == account {
			return b.budget
		}
	}
	return nil
}

// without returns a filter that takes what f takes whatever the fields are.
func without(f storage.Filter, fields ...string) storage.Filter {
	switch f := f.(type) {
	case *storage.Branch:
		return &storage.Branch{Or: f.Or, Left: without(f.Left, fields...), Right: without(f.Right, fields...)}
	case *storage.Leaf:
		if slices.Contains(fields, f.Field.Name) {
			return storage.All{}
		}
	}
	return f
}

// counts returns the record by which a budget judges a call of a key, nil if the budget's filter
// does not take the call. It counts a key that somebody created as their own as its creator, and
// its filter may name either.
func (b *Budget) counts(takes *storage.Program, k *access.Key, full, vouched *storage.Record) *storage.Record {
	r := vouched
	if b.Trust {
		r = full
	}
	return asCounted(takes, k.AsCreator(r), r)
}

// asCounted returns as, the record r with the creator of its key as the caller, unless the filter of
// a budget takes neither.
func asCounted(takes *storage.Program, as, r *storage.Record) *storage.Record {
	if !takes.Match(as, withoutContent) && (as == r || !takes.Match(r, withoutContent)) {
		return nil
	}
	return as
}

// withoutContent is what filters of budgets know of bodies: a call is judged before it is made.
func withoutContent() *storage.Content { return nil }
