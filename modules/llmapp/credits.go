package llmapp

import (
	"context"
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage/credits"
)

// provisionCredits reads the grants of the configuration.
func (a *App) provisionCredits() error {
	for name, org := range sorted(a.Organisations) {
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

// grantCredits gives organisations their first grant. Where the credits are
// unavailable, calls that are paid from them are refused, and all others served.
func (a *App) grantCredits() error {
	unavailable := make(map[*stores.Store]bool)
	for name, org := range sorted(a.Organisations) {
		if org.Credits == "" {
			continue
		}
		store, err := a.Store(org.Store)
		if err != nil {
			return err
		}
		if unavailable[store] {
			continue
		}
		ledger, err := store.Credits()
		if err == nil {
			err = a.SeedCredits(context.Background(), ledger, name)
		}
		if errors.Is(err, credits.ErrUnavailable) {
			a.logger.Error("no call can be paid from credits", zap.String("store", org.Store), zap.Error(err))
			unavailable[store] = true
			continue
		}
		if err != nil {
			return fmt.Errorf("org %s: %w", name, err)
		}
	}
	return nil
}

// SeedCredits gives an organisation its first grant, unless the ledger has it. One that
// nodes share may have been unavailable when the configuration started.
func (a *App) SeedCredits(ctx context.Context, ledger credits.Ledger, org string) error {
	return ledger.Seed(ctx, org, a.Organisations[org].grant)
}

// Balance returns the credits of an organisation that has credits, its first grant included.
func (a *App) Balance(ctx context.Context, org string) (credits.Balance, error) {
	store, err := a.Store(a.StoreOf(org))
	if err != nil {
		return credits.Balance{}, err
	}
	ledger, err := store.Credits()
	if err == nil {
		err = a.SeedCredits(ctx, ledger, org)
	}
	if err != nil {
		return credits.Balance{}, err
	}
	return ledger.Balance(ctx, credits.Hold{Account: credits.Account{Org: org}})
}

// HasCredits tells whether an organisation pays for calls with platform credentials.
func (a *App) HasCredits(org string) bool {
	o := a.Organisations[org]
	return o != nil && o.Credits != ""
}
