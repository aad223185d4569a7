package llmapp

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirhq/weir/internal/reconcile"
	"github.com/weirhq/weir/modules/internal/alert"
	"github.com/weirhq/weir/modules/internal/bills"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/journal"
)

// provisionAlerts makes the engine of each organisation that has channels.
func (a *App) provisionAlerts() error {
	a.alerts = make(map[string]*alert.Engine)
	add := func(org string, channels []*alert.Channel, rules []*alert.Rule) error {
		m := measures{a, org}
		e := alert.New(alert.Options{
			Org: org, Channels: channels, Rules: rules, Measures: m.all(), Logger: a.bounded.Named("alert"),
			Control: m.control,
			Groups: func() (storage.Grouper, error) {
				journal, err := m.journal()
				if err != nil {
					return nil, err
				}
				return journal.Backend(), nil
			},
		})
		for i, c := range channels {
			if slices.Contains(e.ChannelNames()[:i], c.Name) {
				return a.At(fmt.Errorf("org %s: channel %s is given twice", org, c.Name), "org "+org, "channel "+c.Name)
			}
			if err := c.Provision(); err != nil {
				return a.At(fmt.Errorf("org %s: %w", org, err), "org "+org, "channel "+c.Name)
			}
		}
		for _, r := range rules {
			err := r.Provision(e.ChannelNames())
			if err == nil && e.Configured(r.Name) != r {
				err = fmt.Errorf("alert %s is given twice", r.Name)
			}
			if err != nil {
				return a.At(fmt.Errorf("org %s: %w", org, err), "org "+org, "alert "+r.Name)
			}
		}
		if len(channels) > 0 {
			a.alerts[org] = e
		}
		return nil
	}
	channels, rules := a.Channels, a.AlertRules
	if org := a.Organisations[stores.DefaultName]; org != nil {
		channels, rules = slices.Concat(channels, org.Channels), slices.Concat(rules, org.AlertRules)
	}
	if err := add(stores.DefaultName, channels, rules); err != nil {
		return err
	}
	for name, org := range sorted(a.Organisations) {
		if name != stores.DefaultName {
			if err := add(name, org.Channels, org.AlertRules); err != nil {
				return err
			}
		}
	}
	return nil
}

// Alerts returns what evaluates the alerts of an organisation, nil if it has no channel.
func (a *App) Alerts(org string) *alert.Engine { return a.alerts[org] }

// measures are what alerts of an organisation can be about beside records.
type measures struct {
	app *App
	org string
}

func (m measures) all() map[string]alert.Measure {
	watch := &bills.Watch{Context: m.app.ctx, Bills: m.app.bills[m.org], Compare: func(ctx context.Context, b *bills.Bill, w reconcile.Window) (*reconcile.Report, error) {
		return m.app.Reconcile(ctx, m.org, b, w)
	}}
	ofBills := func(of func(*reconcile.Report) float64) alert.Measure {
		return func(_ context.Context, over time.Duration) (map[string]float64, error) {
			reports, err := watch.Reports(int(over / (24 * time.Hour)))
			values := make(map[string]float64, len(reports))
			for name, report := range reports {
				values[name] = of(report)
			}
			return values, err
		}
	}
	return map[string]alert.Measure{
		alert.BudgetPercent: func(ctx context.Context, _ time.Duration) (map[string]float64, error) {
			return m.app.money.Percents(ctx, m.org)
		},
		alert.BudgetForecastPercent: func(ctx context.Context, _ time.Duration) (map[string]float64, error) {
			return m.app.money.ForecastPercents(ctx, m.org)
		},
		alert.KeyDaysLeft:        hourly(m.keyDaysLeft),
		alert.LostRecords:        m.lostRecords,
		alert.BillDifferences:    ofBills(func(r *reconcile.Report) float64 { return float64(len(r.Differences)) }),
		alert.BillDifferenceCost: ofBills(bills.Dollars),
	}
}

func (m measures) control() (control.Log, error) {
	store, err := m.app.StoreOf(m.org)
	if err != nil {
		return nil, err
	}
	return store.Control()
}

func (m measures) journal() (*journal.Journal, error) {
	store, err := m.app.StoreOf(m.org)
	if err != nil {
		return nil, err
	}
	return store.Journal()
}

// keyDaysLeft returns for how many days API keys are valid yet that end.
func (m measures) keyDaysLeft(ctx context.Context) (map[string]float64, error) {
	log, err := m.control()
	if err != nil {
		return nil, err
	}
	keys, err := control.All[control.Key](ctx, &control.Organisation{Log: log, Name: m.org}, control.Page{})
	days := make(map[string]float64)
	for _, k := range keys {
		if ends := k.Object.ExpiresAt; ends != nil && !k.Object.Disabled && time.Until(ends.Time()) > 0 {
			days[strings.TrimSpace(k.Object.Name+" "+k.Object.ID)] = time.Until(ends.Time()).Hours() / 24
		}
	}
	return days, err
}

// lostRecords returns how many records the store of an organisation has lost, of losses within a
// time, by the reason.
func (m measures) lostRecords(_ context.Context, over time.Duration) (map[string]float64, error) {
	journal, err := m.journal()
	if err != nil {
		return nil, err
	}
	lost := make(map[string]float64)
	for _, loss := range journal.Integrity().Losses {
		if time.Since(loss.To.Time()) < over {
			lost[loss.Reason] += float64(loss.Exchanges)
		}
	}
	return lost, nil
}

// hourly is a measure that is taken once an hour, because it reads much and changes slowly.
func hourly(take func(context.Context) (map[string]float64, error)) alert.Measure {
	var (
		mu     sync.Mutex
		at     time.Time          // guarded by mu
		values map[string]float64 // guarded by mu
	)
	return func(ctx context.Context, _ time.Duration) (map[string]float64, error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) > time.Hour {
			taken, err := take(ctx)
			if err != nil {
				return nil, err
			}
			at, values = time.Now(), taken
		}
		return values, nil
	}
}
