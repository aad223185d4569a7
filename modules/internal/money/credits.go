package money

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage/credits"
)

// Grant sets the first grant of an organisation, in US dollars: the organisation pays with credits.
func (m *Budgets) Grant(org, amount string) error {
	rate, err := catalog.ParseRate(amount)
	if err != nil {
		return fmt.Errorf("org %s: credits: %w", org, err)
	}
	m.grants[org] = rate.Nano()
	return nil
}

// Seed gives organisations their first grant. Where the credits are unavailable, calls that are
// paid from them are refused, and all others served.
func (m *Budgets) Seed(ctx context.Context) error {
	unavailable := make(map[string]bool)
	for _, org := range slices.Sorted(maps.Keys(m.grants)) {
		store := m.keys.StoreOf(org)
		if unavailable[store] {
			continue
		}
		ledger, err := m.Ledger(org)
		if err == nil {
			err = m.seed(ctx, ledger, org)
		}
		if errors.Is(err, credits.ErrUnavailable) {
			m.Logger.Error("no call can be paid from credits", zap.String("store", store), zap.Error(err))
			unavailable[store] = true
			continue
		}
		if err != nil {
			return fmt.Errorf("org %s: %w", org, err)
		}
	}
	return nil
}

// seed gives an organisation its first grant, unless the ledger has it. One that nodes share may
// have been unavailable when the configuration started.
func (m *Budgets) seed(ctx context.Context, ledger credits.Ledger, org string) error {
	return ledger.Seed(ctx, org, m.grants[org])
}

// Balance returns the credits of an organisation that has credits, its first grant included.
func (m *Budgets) Balance(ctx context.Context, org string) (credits.Balance, error) {
	ledger, err := m.Ledger(org)
	if err == nil {
		err = m.seed(ctx, ledger, org)
	}
	if err != nil {
		return credits.Balance{}, err
	}
	return ledger.Balance(ctx, credits.Hold{Account: credits.Account{Org: org}})
}

// HasCredits reports whether an organisation pays for calls with platform credentials.
func (m *Budgets) HasCredits(org string) bool {
	_, has := m.grants[org]
	return has
}

// Shares reports whether an account of the platform also serves callers whom the organisation does
// not trust: other organisations, or the platform that grants its credits.
func (m *Budgets) Shares(org string, account *providers.Account) bool {
	return account.Platform && (m.HasCredits(org) || m.keys.ServesOthers(org))
}

// PaysWithCredits reports whether an organisation pays for calls of the account with
// credits.
func (m *Budgets) PaysWithCredits(org string, account *providers.Account) bool {
	return account != nil && account.Platform && m.HasCredits(org)
}
