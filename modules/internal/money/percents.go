package money

import (
	"context"
	"time"

	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// minElapsed is the part of a window before which nothing is forecast: a single call would decide.
const minElapsed = 0.1

// Percents returns how much of the limits of an organisation's budgets is spent in the present
// windows, in percent: by the name of the budget, and the value that has a limit of its own.
func (m *Budgets) Percents(ctx context.Context, org string) (map[string]float64, error) {
	return m.percents(ctx, org, func(*Budget) float64 { return 1 })
}

// ForecastPercents is Percents at the end of the windows, if calls go on as in the windows so far.
// Nothing is forecast for windows that move or have no end, or before a tenth of them is over.
func (m *Budgets) ForecastPercents(ctx context.Context, org string) (map[string]float64, error) {
	return m.percents(ctx, org, func(b *Budget) float64 {
		now := storage.Millis(time.Now())
		begins, ends := b.Bounds(now)
		if b.Rolls() || ends == 0 || float64(now-begins) < minElapsed*float64(ends-begins) {
			return 0
		}
		return float64(ends-begins) / float64(now-begins)
	})
}

// percents are what is spent times a factor, which is 0 for budgets that are left out.
func (m *Budgets) percents(ctx context.Context, org string, factor func(*Budget) float64) (map[string]float64, error) {
	budgets, err := m.Of(org)
	if err != nil || len(budgets) == 0 {
		return nil, err
	}
	store, err := m.store(org)
	if err != nil {
		return nil, err
	}
	ledger, err := store.Credits()
	if err != nil {
		return nil, err
	}
	percents := make(map[string]float64)
	for _, b := range budgets {
		times := factor(b)
		if times == 0 || b.quantity == concurrent {
			continue
		}
		if err := m.Begin(ctx, ledger, b); err != nil {
			return nil, err
		}
		accounts, err := b.Counted(ctx, ledger)
		if err != nil {
			return nil, err
		}
		for _, account := range accounts {
			percents[b.accountName(account.Account)] = 100 * times * float64(account.Spent) / float64(b.limit)
		}
	}
	return percents, nil
}

// accountName names an account of the budget for people.
func (b *Budget) accountName(of credits.Account) string {
	if b.per == nil {
		return b.Name
	}
	return b.Name + " of " + b.Subject(of)
}
