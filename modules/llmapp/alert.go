package llmapp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// alert is told once when an account of a budget has spent a part of its limit.
type alert struct {
	percent int
	label   metric.Label
	// told has the accounts that were told of. Each is a mark in the ledger, so that of
	// several nodes one tells, and a restart does not tell again.
	told sync.Map
}

// mark is the account that stands for an alert of what a hold counts: 1 may be spent. A
// window that moves is marked once in its length.
func (a *alert) mark(h credits.Hold) credits.Hold {
	mark := credits.Hold{Account: h.Account, Limit: 1}
	mark.Budget += " at " + strconv.Itoa(a.percent) + "%"
	if h.Rolling > 0 {
		length := storage.Timestamp(h.Rolling)
		mark.Begins -= mark.Begins % length
		mark.Ends = mark.Begins + length
	}
	return mark
}

// reached reports whether the part of a limit is spent.
func (a *alert) reached(spent, limit plugins.Nanodollars) bool {
	return float64(spent)*100 >= float64(limit)*float64(a.percent)
}

// alert tells of the budgets of a share of whose limits enough is spent.
func (t *Ticket) alert(ctx context.Context, q *quantity) {
	for _, b := range t.budgets.of(q) {
		if len(b.alerts) == 0 {
			continue
		}
		balance, err := t.ledger.Balance(ctx, b.hold)
		if err != nil { // the next charge tells
			return
		}
		for _, a := range b.alerts {
			mark := a.mark(b.hold)
			if _, told := a.told.Load(mark.Account); told || !a.reached(balance.Spent, b.limit) {
				continue
			}
			first, err := t.spend(ctx, mark)
			if err != nil {
				return
			}
			a.remember(mark.Account)
			if first {
				budgetAlerts.With(b.label, a.label).Inc()
				t.logger.Warn("a budget is spent to a part of its limit",
					zap.String("org", b.org), zap.String("budget", b.Name), zap.Int("percent", a.percent), zap.String("of", b.Subject(b.hold.Account)),
					zap.String("spent", b.quantity.text(balance.Spent)), zap.String("limit", b.quantity.text(b.limit)), zap.String("window", b.Window))
			}
		}
	}
}

// spend spends the one of a mark, and reports false if it is spent.
func (t *Ticket) spend(ctx context.Context, mark credits.Hold) (first bool, err error) {
	r := credits.Reservation{ID: uuid.New(), Org: mark.Org, Amount: 1, Holds: []credits.Hold{mark}}
	if err = t.ledger.Reserve(ctx, r); errors.Is(err, credits.ErrInsufficient) {
		return false, nil
	}
	if err == nil {
		err = errors.Join(t.ledger.Charge(ctx, r, 1), t.ledger.Release(ctx, r))
	}
	return true, err
}

// remember keeps an account that was told of, and forgets those of windows that are over.
func (a *alert) remember(mark credits.Account) {
	now := storage.Millis(time.Now())
	a.told.Range(func(of, _ any) bool {
		if ends := of.(credits.Account).Ends; ends != 0 && ends < now { //nolint:forcetypeassert // told has nothing else
			a.told.Delete(of)
		}
		return true
	})
	a.told.Store(mark, true)
}

// provisionAlerts checks at which parts of the limit the budget tells.
func (b *Budget) provisionAlerts() error {
	for _, percent := range b.AlertAt {
		if percent < 1 || percent > 100 {
			return fmt.Errorf("alert_at takes percents of the limit from 1 to 100, not %d", percent)
		}
		b.alerts = append(b.alerts, &alert{percent: percent, label: percents.Of(strconv.Itoa(percent))})
	}
	if len(b.alerts) > 0 && b.quantity == concurrent {
		return errors.New("nothing is spent of calls that run, so that no alert can tell of it")
	}
	return nil
}

var budgetAlerts = metric.NewCounters("weir_budget_alerts_total", "How often a part of a budget's limit was reached, in percent.", "budget", "percent")

// percents are the labels of parts of a limit.
var percents = metric.Bounded{Most: 100}
