package money

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/credits"
)

// Stage is what happens when a part of a budget's limit is spent: an alert in the log, the metrics
// and the audit log, once for each value and window, and calls may go to other models.
type Stage struct {
	// At is the part of the limit in percent, 1 to 100.
	At int `json:"at"`

	// Use is an alias. From then on, the gateway calls the models of the alias in place of the
	// model that a call asks for. Embeddings, pictures, audio and Realtime keep their models. Default: none.
	Use string `json:"use,omitempty"`

	label metric.Label
	// alerted has the marks (credits.Account) of the accounts for which the alert is out. The
	// marks are in the ledger too, so that only one of several nodes alerts, and none again after a restart.
	alerted sync.Map
}

// mark returns the account that is charged once the stage of a budget's account is reached. A window
// that moves has one mark for each of its lengths.
func (s *Stage) mark(h credits.Hold) credits.Hold {
	mark := credits.Hold{Account: h.Account}
	mark.Budget += " at " + strconv.Itoa(s.At) + "%"
	if h.Rolling > 0 {
		length := storage.Timestamp(h.Rolling)
		mark.Begins -= mark.Begins % length
		mark.Ends = mark.Begins + length
	}
	return mark
}

// reached reports whether the stage's part of a limit is spent.
func (s *Stage) reached(spent, limit plugins.Nanodollars) bool {
	return float64(spent)*100 >= float64(limit)*float64(s.At)
}

// alert alerts to the stages that budgets of a share's quantity have reached.
func (t *Bill) alert(ctx context.Context, part *share) {
	for _, b := range t.bounding.byQuantity(part.quantity) {
		if len(b.budget.Stages) == 0 {
			continue
		}
		balance, err := t.ledger.Balance(ctx, b.hold)
		if err != nil { // the next charge alerts
			return
		}
		for _, stage := range b.budget.Stages {
			mark := stage.mark(b.hold)
			if _, alerted := stage.alerted.Load(mark.Account); alerted || !stage.reached(balance.Spent, b.budget.limit) {
				continue
			}
			first, err := chargeOnce(ctx, t.ledger, 1, mark)
			if err != nil {
				return
			}
			stage.remember(mark.Account)
			if first {
				t.budgets.alert(ctx, b, stage, balance)
			}
		}
	}
}

// alert counts and logs that the account of a budget has reached a stage, and adds it to the audit log.
func (m *Budgets) alert(ctx context.Context, b budgetHold, stage *Stage, balance credits.Balance) {
	budgetAlerts.With(b.budget.label, stage.label).Inc()
	m.Logger.Warn("a budget is spent to a part of its limit",
		zap.String("org", b.budget.org), zap.String("budget", b.budget.Name), zap.Int("percent", stage.At), zap.String("of", b.budget.Subject(b.hold.Account)),
		zap.String("spent", b.budget.quantity.text(balance.Spent)), zap.String("limit", b.budget.quantity.text(b.budget.limit)), zap.String("window", b.budget.Window))
	if err := m.audit(ctx, b, stage, balance); err != nil {
		m.Logger.Error("the audit log does not have that a budget is spent to a part of its limit", zap.String("budget", b.budget.Name), zap.Error(err))
	}
}

// stageDetails are the details of the event budget.reached in the audit log.
type stageDetails struct {
	Budget string          `json:"budget"`
	At     int             `json:"at"`
	Use    string          `json:"use,omitempty"`
	Of     string          `json:"of"`
	Spent  json.RawMessage `json:"spent"`
	Limit  json.RawMessage `json:"limit"`
	Window string          `json:"window"`
}

// audit adds to the audit log that the account of a budget has reached a stage.
func (m *Budgets) audit(ctx context.Context, b budgetHold, stage *Stage, balance credits.Balance) error {
	store, err := m.store(b.budget.org)
	if err != nil {
		return err
	}
	log, err := store.Control()
	if err != nil {
		return err
	}
	org := &control.Organisation{Log: log, Name: b.budget.org, By: control.Actor{Key: "weir"}}
	return org.Tell(ctx, "budget.reached", control.Note{Object: b.budget.Name, Details: stageDetails{b.budget.Name, stage.At, stage.Use, b.budget.Subject(b.hold.Account), b.budget.Amount(balance.Spent), b.budget.Amount(b.budget.limit), b.budget.Window}})
}

// remember adds a mark to alerted, and removes those of windows that are over.
func (s *Stage) remember(mark credits.Account) {
	now := storage.Millis(time.Now())
	s.alerted.Range(func(earlier, _ any) bool {
		if ends := earlier.(credits.Account).Ends; ends != 0 && ends < now { //nolint:forcetypeassert // alerted has nothing else
			s.alerted.Delete(earlier)
		}
		return true
	})
	s.alerted.Store(mark, true)
}

// provisionStages checks the stages.
func (b *Budget) provisionStages(isAlias func(name string) bool) error {
	for i, stage := range b.Stages {
		switch {
		case stage == nil:
			return errors.New("a stage is null: give it at, the part of the limit in percent")
		case stage.At < 1 || stage.At > 100:
			return fmt.Errorf("a stage is at 1 to 100 percent of the limit, not at %d", stage.At)
		case b.quantity == concurrent:
			return errors.New("nothing is spent of calls that run, so that a limit of them has no stages")
		case slices.ContainsFunc(b.Stages[:i], func(earlier *Stage) bool { return earlier.At == stage.At }):
			return fmt.Errorf("two stages are at %d%%: `use` tells too, and an alert beside is not needed", stage.At)
		case stage.Use != "" && !isAlias(stage.Use):
			return fmt.Errorf("at %d%%: there is no alias %s", stage.At, stage.Use)
		}
		stage.label = percents.Of(strconv.Itoa(stage.At))
	}
	return nil
}

// diverts reports whether a stage of the budget sends calls to other models.
func (b *Budget) diverts() bool {
	return !b.Observe && slices.ContainsFunc(b.Stages, func(stage *Stage) bool { return stage.Use != "" })
}

// Diversion returns the alias that a call uses in place of its target, and the budget that has reached
// the stage with this alias. The alias is "" if the call keeps its target.
func (m *Budgets) Diversion(ctx context.Context, s Spending) (alias string, by *Budget) {
	if budgets, _ := m.Of(s.Org); !slices.ContainsFunc(budgets, (*Budget).diverts) {
		return "", nil
	}
	bounding, err := m.holdsFor(&s)
	if err != nil { // Admit refuses the call
		return "", nil
	}
	ledger, err := m.Ledger(s.Org)
	if err != nil { // likewise
		return "", nil
	}
	for _, b := range bounding {
		if !b.budget.diverts() {
			continue
		}
		balance, err := ledger.Balance(ctx, b.hold)
		if err != nil {
			return "", nil
		}
		highest := 0
		for _, stage := range b.budget.Stages {
			if stage.Use != "" && stage.At > highest && stage.reached(balance.Spent, b.budget.limit) {
				highest, alias, by = stage.At, stage.Use, b.budget
			}
		}
		if by != nil {
			return alias, by
		}
	}
	return "", nil
}

// Diverting returns a budget with a stage that sends calls to another model, of an organisation whose
// calls are in the store; nil if there is none. A proxy cannot do so, because it sends calls as they are.
func (m *Budgets) Diverting(store string) (org string, b *Budget) {
	for _, org := range slices.Sorted(maps.Keys(m.configured)) {
		for _, b := range m.configured[org] {
			if b.diverts() && m.keys.StoreOf(org) == store {
				return org, b
			}
		}
	}
	return "", nil
}

var budgetAlerts = metric.NewCounters("weir_budget_alerts_total", "How often a part of a budget's limit was reached, in percent.", "budget", "percent")

// percents are the labels of parts of a limit.
var percents = metric.Bounded{Max: 100}
