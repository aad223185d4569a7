package llmapp

import "github.com/weirhq/weir/modules/internal/intake"

// ReadBudget reads the configuration of a budget that is made while Weir runs.
func (a *App) ReadBudget(org string, text []byte) (*Budget, error) {
	b := new(Budget)
	if err := intake.Decode(text, b); err != nil {
		return nil, err
	}
	return b, b.provision(org, a.Aliases)
}

// ConfiguredBudgets are those that the configuration has for an organisation.
func (a *App) ConfiguredBudgets(org string) []*Budget { return a.budgets[org] }
