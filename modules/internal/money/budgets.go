package money

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/mask"
	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// Budgets are the budgets and the credits of all organisations of a configuration. Admit decides by
// them whether a call may go to an account, and sets aside what the call may use. Every lane that
// calls a provider passes it, because a Bill alone sends requests.
type Budgets struct {
	// Ledger opens the ledger of an organisation.
	Ledger func(org string) (credits.Ledger, error)
	// Mask returns what masks the names of users and of other values in the ledger as in records,
	// nil for nothing. Default: nothing.
	Mask func(org string, also mask.Content) *mask.Masker
	// Logger has a bounded rate: callers can repeat what is logged.
	Logger *zap.Logger

	keys    *access.Authenticator
	stores  map[string]*stores.Config
	counts  *lineage.Counts
	isAlias func(name string) bool

	configured map[string][]*Budget           // budgets of the configuration, by organisation
	grants     map[string]plugins.Nanodollars // first grants, of the organisations that have credits
	labels     metric.Set                     // the names of the configured budgets
	created    sync.Map                       // *createdBudgets, by organisation
	callers    callerAccounts
	beginning  sync.Mutex // held while a budget begins with records
}

// New returns Budgets without a budget for organisations that live in stores. Stages of budgets
// use the aliases.
func New(keys *access.Authenticator, configs map[string]*stores.Config, isAlias func(name string) bool, counts *lineage.Counts, logger *zap.Logger) *Budgets {
	m := &Budgets{
		Logger: logger, keys: keys, stores: configs, counts: counts, isAlias: isAlias,
		Mask:       func(string, mask.Content) *mask.Masker { return nil },
		configured: make(map[string][]*Budget), grants: make(map[string]plugins.Nanodollars), labels: make(metric.Set),
	}
	m.Ledger = func(org string) (credits.Ledger, error) {
		store, err := m.store(org)
		if err != nil {
			return nil, err
		}
		return store.Credits()
	}
	return m
}

// store returns the store of an organisation.
func (m *Budgets) store(org string) (*stores.Store, error) {
	name := m.keys.StoreOf(org)
	if config := m.stores[name]; config != nil {
		return config.Store(), nil
	}
	return nil, fmt.Errorf("no store is named %s", name)
}

// Add adds a budget of the configuration.
func (m *Budgets) Add(org string, b *Budget) error {
	if err := b.provision(org, m.isAlias); err != nil {
		return err
	}
	if slices.ContainsFunc(m.configured[org], func(other *Budget) bool { return other.Name == b.Name }) {
		return fmt.Errorf("budget %s is given twice", b.Name)
	}
	m.labels.Add(b.Name)
	b.label = m.labels.Of(b.Name)
	m.configured[org] = append(m.configured[org], b)
	return nil
}

// Configured are the budgets that the configuration has for an organisation.
func (m *Budgets) Configured(org string) []*Budget { return m.configured[org] }

// CheckProperties warns about properties that budgets name in a spelling that no header
// produces: HTTP does not keep the case of the names of headers.
func (m *Budgets) CheckProperties(headers *control.Headers) {
	for _, budgets := range m.configured {
		for _, b := range budgets {
			for _, name := range b.properties() {
				if spelling := headers.Spelling(name); spelling != name {
					m.Logger.Warn(fmt.Sprintf("a budget names a property as no header sets it: write property.%s, or add `property_names %s` to the block llm",
						spelling, name), zap.String("budget", b.Name), zap.String("property", name))
				}
			}
		}
	}
}

// hold is the account of a budget that counts a call, which names its value as records do.
func (m *Budgets) hold(b *Budget, r *storage.Record, at storage.Timestamp) credits.Hold {
	h := b.hold(r, at)
	h.Value = m.Mask(b.org, mask.Content{}).Name(h.Value, nil)
	return h
}

// OfKey returns what counts the calls of a key, whatever they say and whichever model
// they call, with its budgets.
func (m *Budgets) OfKey(k *access.Key) (budgets []*Budget, holds []credits.Hold, err error) {
	all, err := m.Of(k.Org())
	if err != nil {
		return nil, nil, err
	}
	r := new(storage.Record)
	k.ClearClaims(r)
	now := storage.Millis(time.Now())
	for _, b := range all {
		if as := b.countedAs(b.program, k, r, r); as != nil && !slices.Contains(callAttributes, b.Per) {
			budgets, holds = append(budgets, b), append(holds, m.hold(b, as, now))
		}
	}
	return budgets, holds, nil
}

var (
	budgetRefusals = metric.NewCounters("weir_budget_refusals_total", "Calls that a budget refused, by the code of the refusal.", "budget", "code")
	budgetExcess   = metric.NewCounters("weir_budget_excess_dollars_total", "What calls cost beyond what was set aside for them, in US dollars.", "budget")
	budgetSpent    = metric.NewCounters("weir_budget_spent_dollars_total", "What the calls cost that a budget counts, in US dollars.", "budget")
)

// Collectors are the metrics of budgets. They live as long as the process.
var Collectors = []prometheus.Collector{budgetRefusals, budgetSpent, budgetExcess, budgetAlerts, budgetWouldRefuse}
