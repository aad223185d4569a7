package money

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/storage/control"
)

// createdBudgets are the budgets of an organisation, with those that were made while Weir runs.
// Other organisations do not wait while they are read.
type createdBudgets struct {
	mu  sync.Mutex // of whoever reads them again
	now atomic.Pointer[budgetsOf]
}

// budgetsOf are the budgets of an organisation as of a version of its control objects.
type budgetsOf struct {
	version uint64
	created map[string]*Budget // those that were made while Weir runs, by their configurations
	all     []*Budget
}

// ruleNames are the names of budgets that were made while Weir runs, as metrics have them.
var ruleNames = metric.Bounded{Max: 1000}

// readTimeout bounds the reading of rules.
const readTimeout = 5 * time.Second

// Of returns the budgets of an organisation: those of the configuration, then those
// that were made while Weir runs. A change is in force at once.
func (m *Budgets) Of(org string) ([]*Budget, error) {
	config := m.stores[m.keys.StoreOf(org)]
	if config == nil {
		return m.configured[org], nil
	}
	log, err := config.Store().ControlIfAny()
	if log == nil || err != nil {
		return m.configured[org], err
	}
	version := log.Version()
	found, ok := m.created.Load(org)
	if !ok {
		found, _ = m.created.LoadOrStore(org, new(createdBudgets))
	}
	k := found.(*createdBudgets)
	if current := k.now.Load(); current != nil && current.version == version {
		return current.all, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	current := k.now.Load()
	if current != nil && current.version == version { // another call has read them
		return current.all, nil
	}
	read, err := m.read(log, org, current)
	if err != nil {
		return nil, fmt.Errorf("the budgets of %s that were made while Weir runs cannot be read: %w", org, err)
	}
	read.version = version
	k.now.Store(read)
	return read.all, nil
}

// Parse reads the configuration of a budget that is made while Weir runs.
func (m *Budgets) Parse(org string, text []byte) (*Budget, error) {
	b := new(Budget)
	if err := intake.Decode(text, b); err != nil {
		return nil, err
	}
	return b, b.provision(org, m.isAlias)
}

// ParseStored is Parse for one that is kept, perhaps by 0.1.0, whose budgets had an option that
// there is no longer.
func (m *Budgets) ParseStored(org string, text []byte) (*Budget, error) {
	if gjson.GetBytes(text, "reserve").Exists() {
		m.Logger.Warn("a budget sets aside the most that calls can use: it has no option reserve any longer", zap.String("org", org))
		var err error
		if text, err = sjson.DeleteBytes(bytes.Clone(text), "reserve"); err != nil {
			return nil, err
		}
	}
	return m.Parse(org, text)
}

// read reads the budgets of an organisation again. What has not changed stays the same
// Budget, which remembers what it told.
func (m *Budgets) read(log control.Log, org string, before *budgetsOf) (*budgetsOf, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	rules, err := control.Rules(ctx, log, org)
	if err != nil {
		return nil, err
	}
	read := &budgetsOf{created: make(map[string]*Budget, len(rules)), all: slices.Clone(m.configured[org])}
	for _, rule := range rules {
		if slices.ContainsFunc(m.configured[org], func(b *Budget) bool { return b.Name == rule.Name }) {
			m.Logger.Error("a budget of the configuration takes the place of one that was made while Weir runs", zap.String("org", org), zap.String("budget", rule.Name))
			continue
		}
		var b *Budget
		if before != nil {
			b = before.created[string(rule.Budget)]
		}
		if b == nil {
			if b, err = m.ParseStored(org, rule.Budget); err != nil {
				return nil, fmt.Errorf("%s: %w", rule.ID, err)
			}
			b.label = ruleNames.Of(b.Name)
		}
		read.created[string(rule.Budget)], read.all = b, append(read.all, b)
	}
	return read, nil
}
