package control

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/weirhq/weir/storage"
)

// Rule is a budget or a limit that was made while Weir runs.
type Rule struct {
	// ID begins with `rule_`.
	ID string `json:"id"`
	// Org is the organisation whose calls the rule bounds.
	Org string `json:"organization"`
	// Name is that of the budget. It belongs to one rule of the organisation.
	Name string `json:"name"`
	// Project is the label of the project whose limit the rule is, "" for any other rule.
	Project string `json:"project,omitempty"`
	// Budget is the configuration of the budget, as the configuration of the app has it.
	Budget json.RawMessage `json:"budget"`
	// CreatedAt is when the rule was created.
	CreatedAt storage.Timestamp `json:"created_at"`
}

func (r *Rule) object() Object {
	o := Object{ID: r.ID, Kind: KindRule, Name: r.Name}
	if r.Project != "" {
		o.Lists = []List{InProject(r.Project)}
	}
	return o
}

// SetRule makes the rule of a name, or changes it.
func (o *Organisation) SetRule(ctx context.Context, name, project string, budget json.RawMessage) (r *Rule, err error) {
	err = o.retry(ctx, func() error {
		verb := Updated
		kept, err := o.Log.Named(ctx, o.Name, KindRule, name)
		before := &kept
		if r, err = read[Rule](kept, err); errors.Is(err, ErrNotFound) {
			r, err, before, verb = &Rule{ID: newID("rule_"), Org: o.Name, Name: name, CreatedAt: now()}, nil, nil, Created
		}
		if err != nil {
			return err
		}
		r.Project, r.Budget = project, budget
		after, err := write(r)
		if err != nil {
			return err
		}
		err = o.Log.Commit(ctx, o.Name, []Event{o.event(verb, before, &after)})
		if errors.Is(err, ErrTaken) { // by a rule that was made meanwhile
			err = ErrChanged
		}
		return err
	})
	return r, err
}

// Rules returns all rules of an organisation.
func Rules(ctx context.Context, log Log, org string) (all []*Rule, err error) {
	page, err := All[Rule](ctx, &Organisation{Log: log, Name: org}, Page{})
	for _, r := range page {
		all = append(all, r.Object)
	}
	return all, err
}
