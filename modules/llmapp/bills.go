package llmapp

import (
	"context"
	"fmt"
	"slices"

	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/modules/internal/bills"
	"github.com/weirhq/weir/plugins/catalog"
)

// Reconciler compares the bills of providers with the records of organisations.
type Reconciler struct {
	orgs    *organisations
	catalog *catalog.Catalog
}

// provisionBills checks the bills.
func (o *organisations) provisionBills() error {
	for name, org := range sorted(o.byName) {
		for i, b := range org.Bills {
			err := b.Provision()
			if err == nil && slices.ContainsFunc(org.Bills[:i], func(other *bills.Bill) bool { return other.Name == b.Name }) {
				err = fmt.Errorf("bill %s is given twice; give one of them another name, as in `bill eu openai`", b.Name)
			}
			if err != nil {
				return o.errorAt(name, err, "bill "+b.Name)
			}
		}
	}
	return nil
}

// Bills returns the bills of an organisation, in the order of the configuration.
func (r *Reconciler) Bills(org string) []*bills.Bill {
	if o := r.orgs.byName[org]; o != nil {
		return o.Bills
	}
	return nil
}

// Compare compares a bill of an organisation with its records.
func (r *Reconciler) Compare(ctx context.Context, org string, b *bills.Bill, w reconcile.Window) (*reconcile.Report, error) {
	store := r.orgs.storeOf(org)
	defer store.Hold()()
	journal, err := store.Journal()
	if err != nil {
		return nil, err
	}
	var lost []reconcile.Loss
	if r.orgs.keys.IsAlone(org) { // nobody knows whose records a store has lost
		lost = bills.Losses(journal)
	}
	return b.Compare(ctx, journal, org, r.catalog, w, lost)
}
