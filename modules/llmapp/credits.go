package llmapp

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weirhq/weir/plugins/catalog"
)

// provisionCredits reads the grants of the configuration.
func (a *App) provisionCredits() error {
	for _, name := range slices.Sorted(maps.Keys(a.Organisations)) {
		org := a.Organisations[name]
		if org.Credits == "" {
			continue
		}
		amount, err := catalog.ParseRate(org.Credits)
		if err != nil {
			return fmt.Errorf("org %s: credits: %w", name, err)
		}
		org.grant = amount.Nano()
	}
	return nil
}

// grantCredits gives organisations their first grant.
func (a *App) grantCredits() error {
	for _, name := range slices.Sorted(maps.Keys(a.Organisations)) {
		org := a.Organisations[name]
		if org.Credits == "" {
			continue
		}
		store, err := a.Store(org.Store)
		if err != nil {
			return err
		}
		ledger, err := store.Credits()
		if err != nil {
			return fmt.Errorf("store %s: %w", org.Store, err)
		}
		if err := ledger.Seed(name, org.grant); err != nil {
			return fmt.Errorf("org %s: %w", name, err)
		}
	}
	return nil
}

// HasCredits tells whether an organisation pays for calls with platform credentials.
func (a *App) HasCredits(org string) bool {
	o := a.Organisations[org]
	return o != nil && o.Credits != ""
}
