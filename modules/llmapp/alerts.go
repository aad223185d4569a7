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
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// provisionAlerts makes the engine of each organisation that has channels.
func (o *organisations) provisionAlerts() error {
	o.alerts = make(map[string]*alert.Engine)
	for name, org := range sorted(o.byName) {
		m := measures{o, name}
		e := alert.New(alert.Options{
			Org: name, Channels: org.Channels, Rules: org.AlertRules, Measures: m.all(), Logger: o.env.bounded.Named("alert"),
			Control: m.control,
			Groups: func() (storage.Grouper, error) {
				journal, err := o.storeOf(name).Journal()
				if err != nil {
					return nil, err
				}
				return journal.Backend(), nil
			},
		})
		for i, c := range org.Channels {
			err := c.Provision()
			if slices.Contains(e.ChannelNames()[:i], c.Name) {
				err = fmt.Errorf("channel %s is given twice", c.Name)
			}
			if err != nil {
				return o.errorAt(name, err, "channel "+c.Name)
			}
		}
		for _, r := range org.AlertRules {
			err := r.Provision(e.ChannelNames())
			if err == nil && e.Configured(r.Name) != r {
				err = fmt.Errorf("alert %s is given twice", r.Name)
			}
			if err != nil {
				return o.errorAt(name, err, "alert "+r.Name)
			}
		}
		if len(org.Channels) > 0 {
			o.alerts[name] = e
		}
	}
	return nil
}

// measures are what alerts of an organisation can be about beside records.
type measures struct {
	orgs *organisations
	org  string
}

func (m measures) all() map[string]alert.Measure {
	watch := &bills.Watch{
		Context: m.orgs.env.ctx, Bills: m.orgs.reconciler.Bills(m.org),
		Lease: func(ctx context.Context, life time.Duration) (bool, error) {
			return m.orgs.storeOf(m.org).Lease(ctx, m.org, "bills", life)
		},
		Compare: func(ctx context.Context, b *bills.Bill, w reconcile.Window) (*reconcile.Report, error) {
			return m.orgs.reconciler.Compare(ctx, m.org, b, w)
		},
	}
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
			return m.orgs.money.Percents(ctx, m.org)
		},
		alert.BudgetForecastPercent: func(ctx context.Context, _ time.Duration) (map[string]float64, error) {
			return m.orgs.money.ForecastPercents(ctx, m.org)
		},
		alert.KeyDaysLeft:        hourly(m.keyDaysLeft),
		alert.LostRecords:        m.lostRecords,
		alert.BillDifferences:    ofBills(func(r *reconcile.Report) float64 { return float64(len(r.Differences)) }),
		alert.BillDifferenceCost: ofBills(bills.Dollars),
	}
}

func (m measures) control() (control.Log, error) { return m.orgs.storeOf(m.org).Control() }

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
	journal, err := m.orgs.storeOf(m.org).Journal()
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
