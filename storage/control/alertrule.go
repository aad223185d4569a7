package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirhq/weir/storage"
)

// AlertRule is a rule of alerts that was made while Weir runs.
type AlertRule struct {
	// ID begins with `alert_rule_`.
	ID string `json:"id"`
	// Org is the organisation whose calls the rule watches.
	Org string `json:"organization"`
	// Name belongs to one rule of the organisation.
	Name string `json:"name"`
	// Rule is the configuration of the rule, as the configuration of the app has it.
	Rule json.RawMessage `json:"rule"`
	// CreatedAt is when the rule was created.
	CreatedAt storage.Timestamp `json:"created_at"`
}

func (r *AlertRule) object() Object { return Object{ID: r.ID, Kind: KindAlertRule, Name: r.Name} }

// maxAlertRules bounds the rules of an organisation, which are all evaluated each minute.
const maxAlertRules = 500

// ErrManyAlertRules means that the organisation has as many rules of alerts as it may have.
var ErrManyAlertRules = fmt.Errorf("an organisation has at most %d rules of alerts that are made while Weir runs: delete some", maxAlertRules)

// SetAlertRule makes the rule of a name, or replaces it.
func (o *Organisation) SetAlertRule(ctx context.Context, name string, rule json.RawMessage) error {
	return o.retry(ctx, func() error {
		stored, err := Named[AlertRule](ctx, o, name)
		if err == nil {
			_, err = Update(ctx, o, stored.ID, func(r *AlertRule) error {
				r.Rule = rule
				return nil
			})
			return err
		}
		if !errors.Is(err, ErrNotFound) {
			return err
		}
		all, err := o.Log.List(ctx, o.Name, KindAlertRule, Page{})
		if err != nil {
			return err
		}
		if len(all) >= maxAlertRules {
			return ErrManyAlertRules
		}
		err = create(ctx, o, &AlertRule{ID: newID("alert_rule_"), Org: o.Name, Name: name, Rule: rule, CreatedAt: now()})
		if errors.Is(err, ErrTaken) { // by a rule that was made meanwhile
			err = ErrChanged
		}
		return err
	})
}
