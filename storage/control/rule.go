package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/weirhq/weir/storage"
)

// Rule is a budget or a limit that was created while Weir runs, and not by its configuration.
type Rule struct {
	// ID begins with `rule_`.
	ID string `json:"id"`
	// Org is the organisation whose calls the rule bounds.
	Org string `json:"organization"`
	// Name is the name of the budget. It belongs to one rule of the organisation.
	Name string `json:"name"`
	// Project is the label of the project whose limit the rule is, "" for any other rule.
	Project string `json:"project,omitempty"`
	// Budget is the configuration of the budget, as the configuration of the app has it.
	Budget json.RawMessage `json:"budget"`
	// Alerts are sent when a part of the limit is spent. The oldest is the first. Whoever sets
	// the alerts also sets the stages in Budget that stand for them.
	Alerts []Alert `json:"alerts,omitempty"`
	// CreatedAt is when the rule was created.
	CreatedAt storage.Timestamp `json:"created_at"`
}

// Alert is sent when a part of a rule's limit is spent.
type Alert struct {
	// ID begins with `alert_`.
	ID string `json:"id"`
	AlertSettings
}

// AlertSettings are what an administrator sets of an alert.
type AlertSettings struct {
	// Amount is the part of the limit, in cents.
	Amount int64 `json:"threshold_amount"`
	// Recipients are the emails of the people whom the alert is for, and SubjectPrefix begins
	// the subjects of mails to them. Weir keeps both, and sends no mail.
	Recipients    []string `json:"recipients"`
	SubjectPrefix string   `json:"subject_prefix,omitempty"`
}

// AddAlert gives the rule an alert.
func (r *Rule) AddAlert(s AlertSettings) Alert {
	a := Alert{ID: newID("alert_"), AlertSettings: s}
	r.Alerts = append(r.Alerts, a)
	return a
}

func (r *Rule) object() Object {
	o := Object{ID: r.ID, Kind: KindRule, Name: r.Name}
	if r.Project != "" {
		o.Lists = []List{InProject(r.Project)}
	}
	return o
}

// Each call looks at all rules of its organisation. An organisation has at most maxRules rules,
// and their values have at most maxRulesSize bytes together.
const (
	maxRules     = 2000
	maxRulesSize = 2 << 20
)

// ErrFull means that the organisation has as many rules as it may have, or that they are as
// long together as they may be.
var ErrFull = fmt.Errorf("an organisation has at most %d budgets and limits that are made while Weir runs, of %d MiB together: delete some", maxRules, maxRulesSize>>20)

// commitRules commits changes of rules, one at a time for each organisation: changes at once would each
// find room for the last rule. Nodes that share a log do not wait for each other, so that
// together they may exceed maxRules by the changes that they make at once.
func (o *Organisation) commitRules(ctx context.Context, events ...Event) error {
	mu, _ := ruleChanges.LoadOrStore(o.Name, new(sync.Mutex))
	mu.(*sync.Mutex).Lock()
	defer mu.(*sync.Mutex).Unlock()
	if err := o.checkRules(ctx, events...); err != nil {
		return err
	}
	return o.Log.Commit(ctx, o.Name, events)
}

// ruleChanges has a *sync.Mutex for each organisation whose rules have changed.
var ruleChanges sync.Map

// checkRules refuses events that make the rules too many or too long. Events after which there
// are no more rules, and no longer rules, are never refused.
func (o *Organisation) checkRules(ctx context.Context, events ...Event) error {
	more, longer := 0, 0
	for _, e := range events {
		if e.Before == nil {
			more++
		} else {
			longer -= len(e.Before.Value)
		}
		if e.After == nil {
			more--
		} else {
			longer += len(e.After.Value)
		}
	}
	if more <= 0 && longer <= 0 {
		return nil
	}
	objects, err := o.Log.List(ctx, o.Name, KindRule, Page{})
	size := longer
	for _, r := range objects {
		size += len(r.Value)
	}
	if err == nil && (more > 0 && len(objects)+more > maxRules || longer > 0 && size > maxRulesSize) {
		err = ErrFull
	}
	return err
}

// RuleSettings are the new settings of a rule.
type RuleSettings struct {
	// Name is the name of the rule. The rule is created if there is none with this name.
	Name string
	// Project and Budget are as in Rule. The rule is deleted if Budget is nil.
	Project string
	Budget  json.RawMessage
}

// SetRules creates, changes and deletes rules, all of them or none.
func (o *Organisation) SetRules(ctx context.Context, all ...RuleSettings) error {
	return o.retry(ctx, func() error {
		var events []Event
		for _, s := range all {
			e, err := o.setRule(ctx, s)
			if err != nil {
				return err
			}
			if e != nil {
				events = append(events, *e)
			}
		}
		err := o.commitRules(ctx, events...)
		if errors.Is(err, ErrTaken) { // by a rule that was created meanwhile
			err = ErrChanged
		}
		return err
	})
}

// setRule returns the event that gives a rule its settings, nil if it is to be deleted and does not exist.
func (o *Organisation) setRule(ctx context.Context, s RuleSettings) (*Event, error) {
	object, err := o.Log.Named(ctx, o.Name, KindRule, s.Name)
	r, err := read[Rule](object, err)
	switch {
	case errors.Is(err, ErrNotFound) && s.Budget == nil:
		return nil, nil //nolint:nilnil // there is nothing to do
	case errors.Is(err, ErrNotFound):
		e, err := created(o, &Rule{ID: newID("rule_"), Org: o.Name, Name: s.Name, Project: s.Project, Budget: s.Budget, CreatedAt: now()})
		return &e, err
	case err != nil:
		return nil, err
	case s.Budget == nil:
		return new(o.event(Deleted, &object, nil)), nil
	}
	r.Project, r.Budget = s.Project, s.Budget
	after, err := write(r)
	if err != nil {
		return nil, err
	}
	return new(o.event(Updated, &object, &after)), nil
}

// Rules returns all rules of an organisation.
func Rules(ctx context.Context, log Log, org string) (all []*Rule, err error) {
	page, err := All[Rule](ctx, &Organisation{Log: log, Name: org}, Page{})
	for _, r := range page {
		all = append(all, r.Object)
	}
	return all, err
}
