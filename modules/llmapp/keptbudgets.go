package llmapp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/storage/control"
)

// keptBudgets are the budgets of organisations, with those that were made while Weir runs.
type keptBudgets struct {
	mu  sync.RWMutex
	org map[string]*budgetsOf
}

// budgetsOf are the budgets of an organisation as of a version of its control objects.
type budgetsOf struct {
	version uint64
	kept    []keptBudget
	all     []*Budget
}

// keptBudget is a budget that was made while Weir runs, and its configuration.
type keptBudget struct {
	*Budget
	text json.RawMessage
}

// ruleNames are the names of budgets that were made while Weir runs, as metrics have them.
var ruleNames = metric.Bounded{Most: 1000}

// readTimeout bounds the reading of rules.
const readTimeout = 5 * time.Second

// BudgetsOf returns the budgets of an organisation: those of the configuration, then those
// that were made while Weir runs. A change is in force at once.
func (a *App) BudgetsOf(org string) ([]*Budget, error) {
	config := a.Stores[a.StoreOf(org)]
	if config == nil || config.store == nil {
		return a.budgets[org], nil
	}
	log, err := config.store.controlIfAny()
	if log == nil || err != nil {
		return a.budgets[org], err
	}
	version := log.Version()
	k := &a.kept
	k.mu.RLock()
	known := k.org[org]
	k.mu.RUnlock()
	if known != nil && known.version == version {
		return known.all, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if known = k.org[org]; known != nil && known.version == version { // another call has read them
		return known.all, nil
	}
	read, err := a.readBudgets(log, org, known)
	if err != nil {
		return nil, fmt.Errorf("the budgets of %s that were made while Weir runs cannot be read: %w", org, err)
	}
	read.version = version
	if k.org == nil {
		k.org = make(map[string]*budgetsOf)
	}
	k.org[org] = read
	return read.all, nil
}

// readBudgets reads the budgets of an organisation again. What has not changed stays the same
// Budget, which remembers what it told.
func (a *App) readBudgets(log control.Log, org string, before *budgetsOf) (*budgetsOf, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	rules, err := control.Rules(ctx, log, org)
	if err != nil {
		return nil, err
	}
	read := &budgetsOf{all: slices.Clone(a.budgets[org])}
	for _, rule := range rules {
		if slices.ContainsFunc(a.budgets[org], func(b *Budget) bool { return b.Name == rule.Name }) {
			a.bounded.Error("a budget of the configuration takes the place of one that was made while Weir runs", zap.String("org", org), zap.String("budget", rule.Name))
			continue
		}
		b := before.find(rule.Budget)
		if b == nil {
			if b, err = a.ReadBudget(org, rule.Budget); err != nil {
				return nil, fmt.Errorf("%s: %w", rule.ID, err)
			}
			b.label = ruleNames.Of(b.Name)
		}
		read.kept, read.all = append(read.kept, keptBudget{b, rule.Budget}), append(read.all, b)
	}
	return read, nil
}

// find returns the budget of a configuration, nil if there is none.
func (o *budgetsOf) find(text json.RawMessage) *Budget {
	if o == nil {
		return nil
	}
	for _, k := range o.kept {
		if bytes.Equal(k.text, text) {
			return k.Budget
		}
	}
	return nil
}
