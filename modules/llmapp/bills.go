package llmapp

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/modules/internal/bills"
	"github.com/weirhq/weir/modules/internal/stores"
)

// provisionBills checks the bills of each organisation.
func (a *App) provisionBills() error {
	a.bills = map[string][]*bills.Bill{stores.DefaultName: a.Bills}
	for name, org := range sorted(a.Organisations) {
		a.bills[name] = slices.Concat(a.bills[name], org.Bills)
	}
	for name, all := range sorted(a.bills) {
		for i, b := range all {
			err := b.Provision()
			if err == nil && slices.ContainsFunc(all[:i], func(other *bills.Bill) bool { return other.Name == b.Name }) {
				err = fmt.Errorf("bill %s is given twice; give one of them another name, as in `bill eu openai`", b.Name)
			}
			if err != nil {
				return a.At(fmt.Errorf("org %s: %w", name, err), "org "+name, "bill "+b.Name)
			}
		}
	}
	return nil
}

// BillsOf returns the bills of an organisation, in the order of the configuration.
func (a *App) BillsOf(org string) []*bills.Bill { return a.bills[org] }

// Reconcile compares a bill of an organisation with its records.
func (a *App) Reconcile(ctx context.Context, org string, b *bills.Bill, w reconcile.Window) (*reconcile.Report, error) {
	store, err := a.StoreOf(org)
	if err != nil {
		return nil, err
	}
	defer store.Hold()()
	journal, err := store.Journal()
	if err != nil {
		return nil, err
	}
	var lost []reconcile.Loss
	if a.keys.IsAlone(org) { // nobody knows whose records a store has lost
		lost = bills.Losses(journal)
	}
	return b.Compare(ctx, journal, org, a.catalog, w, lost)
}
