package llmcontrol

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// budget is how the API writes a budget. Amounts are US dollars, or numbers of another
// quantity.
type budget struct {
	Name     string          `json:"name"`
	Quantity string          `json:"quantity"`
	Limit    json.RawMessage `json:"limit"`
	Window   string          `json:"window"`
	Timezone string          `json:"timezone"`
	// Per is the attribute each value of which has the limit, null if all calls share it.
	Per *string `json:"per"`
	// BeginsAt and EndsAt are the window, null for one that moves or has no end.
	BeginsAt *storage.Timestamp `json:"begins_at"`
	EndsAt   *storage.Timestamp `json:"ends_at"`
	// Values is how many values have spent something, Accounts those that spent the most.
	Values   int       `json:"values"`
	Accounts []counted `json:"accounts"`
}

// counted is what a budget counts of one value.
type counted struct {
	// Value is null if all calls share the limit.
	Value     *string         `json:"value"`
	Spent     json.RawMessage `json:"spent"`
	Reserved  json.RawMessage `json:"reserved"`
	Remaining json.RawMessage `json:"remaining"`
}

// describeBudget writes a budget with some of its accounts.
func describeBudget(b *llmapp.Budget, accounts []credits.Balance, limit int) budget {
	d := budget{
		Name: b.Name, Quantity: b.Counts(), Limit: b.Amount(b.Cap()), Window: b.Window,
		Timezone: cmp.Or(b.Timezone, "UTC"), Values: len(accounts), Accounts: []counted{},
	}
	if b.Per != "" {
		d.Per = &b.Per
	}
	if begins, ends := b.Bounds(storage.Millis(time.Now())); ends != 0 && !b.Rolls() {
		d.BeginsAt, d.EndsAt = &begins, &ends
	}
	slices.SortStableFunc(accounts, func(a, b credits.Balance) int { return cmp.Compare(b.Spent+b.Reserved, a.Spent+a.Reserved) })
	for _, a := range accounts[:min(len(accounts), limit)] {
		c := counted{
			Spent: b.Amount(a.Spent), Reserved: b.Amount(a.Reserved), Remaining: b.Amount(b.Cap() - a.Spent - a.Reserved),
		}
		if b.Per != "" {
			c.Value = &a.Value
		}
		d.Accounts = append(d.Accounts, c)
	}
	return d
}

// listBudgets takes GET /v1/budgets.
func listBudgets(c *call) (any, error) {
	limit, _, err := c.query()
	if err != nil {
		return nil, err
	}
	ledger, err := c.store.Credits()
	if err != nil {
		return nil, err
	}
	list := []budget{}
	for _, b := range c.app.BudgetsOf(c.key.Org()) {
		accounts, err := b.Counted(c.ctx, ledger)
		if err != nil {
			return nil, err
		}
		list = append(list, describeBudget(b, accounts, limit))
	}
	return page{Items: list}, nil
}

// ownBudgets are those that count every call of the caller.
func (c *call) ownBudgets() ([]budget, error) {
	list := []budget{}
	budgets, holds := c.app.BudgetsOfKey(c.key)
	if len(budgets) == 0 {
		return list, nil
	}
	ledger, err := c.store.Credits()
	if err != nil {
		return nil, err
	}
	for i, b := range budgets {
		balance, err := ledger.Balance(c.ctx, holds[i])
		if err != nil {
			return nil, err
		}
		list = append(list, describeBudget(b, []credits.Balance{balance}, 1))
	}
	return list, nil
}
