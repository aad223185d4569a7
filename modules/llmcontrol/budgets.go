package llmcontrol

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
	"github.com/weirhq/weir/storage/credits"
)

// budget is how the API writes a budget. Amounts are US dollars, or numbers of another
// quantity.
type budget struct {
	// ID is the id of the rule, null for a budget of the configuration: the API cannot change one.
	ID       *string `json:"id"`
	Name     string  `json:"name"`
	Quantity string  `json:"quantity"`
	// Limit is null for a budget that cannot be read.
	Limit    json.RawMessage `json:"limit"`
	Window   string          `json:"window"`
	Timezone string          `json:"timezone"`
	// Since is the budget's `since`, null for a budget that began at 0.
	Since *string `json:"since"`
	// Per is an attribute: each of its values has the limit. Null if all calls share the limit.
	Per *string `json:"per"`
	// Filter says which calls the budget counts, null for all.
	Filter json.RawMessage `json:"filter"`
	// Trust, Wait, Cut, Stages, Unpriced and Observe are settings of a budget, as in the
	// configuration.
	Trust    bool            `json:"trust"`
	Wait     string          `json:"wait"`
	Cut      bool            `json:"cut"`
	Stages   []*llmapp.Stage `json:"stages"`
	Unpriced string          `json:"on_unpriced"`
	// Observe is true if the budget refuses no call. WouldRefuse is what it would have refused in
	// the window, null for a budget that refuses, and in what a caller is told of its own calls.
	Observe     bool             `json:"observe"`
	WouldRefuse *llmapp.Refusals `json:"would_refuse"`
	// BeginsAt and EndsAt are the window, null for one that moves or has no end.
	BeginsAt *storage.Timestamp `json:"begins_at"`
	EndsAt   *storage.Timestamp `json:"ends_at"`
	// Values is how many values have spent something, Accounts the values that spent the most.
	Values   int             `json:"values"`
	Accounts []budgetAccount `json:"accounts"`
	// Warnings say what may be wrong with a budget that is made or changed, and why one cannot be read.
	Warnings []string `json:"warnings,omitempty"`
}

// budgetAccount is what a budget counts of one value.
type budgetAccount struct {
	// Value is null if all calls share the limit.
	Value     *string         `json:"value"`
	Spent     json.RawMessage `json:"spent"`
	Reserved  json.RawMessage `json:"reserved"`
	Remaining json.RawMessage `json:"remaining"`
}

// describeBudget writes a budget with some of its accounts. r is nil for one of the
// configuration.
func describeBudget(b *llmapp.Budget, r *control.Rule, accounts []credits.Balance, limit int) budget {
	d := budget{
		Name: b.Name, Quantity: b.Counts(), Limit: b.Amount(b.Cap()), Window: b.Window,
		Timezone: cmp.Or(b.Timezone, "UTC"), Values: len(accounts), Accounts: []budgetAccount{},
		Filter: b.Filter, Trust: b.Trust, Wait: time.Duration(b.Wait).String(), Cut: b.Cut,
		Stages: append([]*llmapp.Stage{}, b.Stages...), Unpriced: cmp.Or(b.Unpriced, "refuse"), Observe: b.Observe,
	}
	if r != nil {
		d.ID = &r.ID
	}
	if b.Per != "" {
		d.Per = &b.Per
	}
	if b.Since != "" {
		d.Since = &b.Since
	}
	if begins, ends := b.Bounds(storage.Millis(time.Now())); ends != 0 && !b.Rolls() {
		d.BeginsAt, d.EndsAt = &begins, &ends
	}
	slices.SortStableFunc(accounts, func(a, b credits.Balance) int { return cmp.Compare(b.Spent+b.Reserved, a.Spent+a.Reserved) })
	for _, a := range accounts[:min(len(accounts), limit)] {
		c := budgetAccount{
			Spent: b.Amount(a.Spent), Reserved: b.Amount(a.Reserved), Remaining: b.Amount(b.Cap() - a.Spent - a.Reserved),
		}
		if b.Per != "" {
			c.Value = &a.Value
		}
		d.Accounts = append(d.Accounts, c)
	}
	return d
}

// listedBudget is a budget of the configuration, or a rule with another name.
type listedBudget struct {
	name       string
	configured *llmapp.Budget // nil for a rule
	rule       *control.Rule
}

// budgetsAfter returns the budgets with the names after one, in their order.
func (c *call) budgetsAfter(name string) (list []listedBudget, err error) {
	configured := make(map[string]bool)
	for _, b := range c.app.Money().Configured(c.org.Name) {
		configured[b.Name] = true
		list = append(list, listedBudget{name: b.Name, configured: b})
	}
	rules, err := control.Rules(c.ctx, c.org.Log, c.org.Name)
	for _, r := range rules {
		if !configured[r.Name] {
			list = append(list, listedBudget{name: r.Name, rule: r})
		}
	}
	list = slices.DeleteFunc(list, func(l listedBudget) bool { return l.name <= name })
	slices.SortFunc(list, func(a, b listedBudget) int { return cmp.Compare(a.name, b.name) })
	return list, err
}

func listBudgets(c *call) (any, error) {
	limit, texts, err := c.query("after", "values")
	if err != nil {
		return nil, err
	}
	values, err := countOf("values", texts[1], maxPage)
	if err != nil {
		return nil, err
	}
	list, err := c.budgetsAfter(texts[0])
	if err != nil {
		return nil, err
	}
	p, items := page{}, []budget{}
	if len(list) > limit {
		list = list[:limit]
		p.Next = &list[limit-1].name
	}
	for _, l := range list {
		b := l.configured
		if b == nil {
			if b, err = c.app.Money().ParseStored(c.org.Name, l.rule.Budget); err != nil {
				items = append(items, describeUnreadable(l.rule, b, err))
				continue
			}
		}
		d, err := c.describe(b, l.rule, values)
		if err != nil {
			return nil, err
		}
		items = append(items, d)
	}
	p.Items = items
	return p, nil
}

// unreadable is the error for a rule that the configuration no longer allows, such as one
// that uses an alias that is gone.
func unreadable(r *control.Rule, err error) error {
	return conflict("the budget " + r.Name + " cannot be read: " + err.Error() + "; change or delete it")
}

// describeUnreadable lists a budget that cannot be read, with what is known of it, so that an
// administrator can change or delete it. b is nil if nothing is.
func describeUnreadable(r *control.Rule, b *llmapp.Budget, err error) budget {
	d := budget{
		ID: &r.ID, Name: r.Name, Quantity: "usd", Limit: json.RawMessage("null"), Timezone: "UTC", Wait: "0s",
		Stages: []*llmapp.Stage{}, Unpriced: "refuse", Accounts: []budgetAccount{},
		Warnings: []string{unreadable(r, err).Error()},
	}
	if b != nil {
		d.Quantity, d.Filter, d.Window = cmp.Or(b.Quantity, d.Quantity), b.Filter, b.Window
	}
	return d
}

// describe writes a budget with what it counts now.
func (c *call) describe(b *llmapp.Budget, r *control.Rule, limit int) (budget, error) {
	ledger, err := c.store.Credits()
	if err != nil {
		return budget{}, err
	}
	if err := c.app.Money().Begin(c.ctx, ledger, b); err != nil {
		return budget{}, err
	}
	accounts, err := b.Counted(c.ctx, ledger)
	if err != nil {
		return budget{}, err
	}
	d := describeBudget(b, r, accounts, limit)
	d.WouldRefuse, err = b.WouldRefuse(c.ctx, ledger)
	return d, err
}

// errConfigured is the error for changing a budget of the configuration.
func errConfigured(name string) error {
	return conflict("the budget " + name + " is in the configuration, which alone changes it")
}

// ruleNamed is the rule that keeps a budget that was made while Weir runs.
func (c *call) ruleNamed(name string) (*control.Rule, error) {
	r, err := control.Named[control.Rule](c.ctx, c.org, name)
	if errors.Is(err, control.ErrNotFound) {
		err = control.NotFoundError("budget")
	}
	return r, err
}

// configured returns the budget that the configuration has under a name, nil for none.
func (c *call) configured(name string) *llmapp.Budget {
	for _, b := range c.app.Money().Configured(c.org.Name) {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// answerBudget describes a budget that was made while Weir runs.
func (c *call) answerBudget(name string) (budget, error) {
	r, err := c.ruleNamed(name)
	if err != nil {
		return budget{}, err
	}
	b, err := c.app.Money().ParseStored(c.org.Name, r.Budget)
	if err != nil {
		return budget{}, unreadable(r, err)
	}
	return c.describe(b, r, defaultPage)
}

func setBudget(c *call) (any, error) {
	b, err := c.app.Money().Parse(c.org.Name, c.body)
	if err != nil {
		return nil, bad("%v", err)
	}
	if c.configured(b.Name) != nil {
		return nil, errConfigured(b.Name)
	}
	s := control.RuleSettings{Name: b.Name, Budget: c.body}
	r, err := c.ruleNamed(b.Name)
	if err == nil {
		s.Project = r.Project
	} else if !errors.Is(err, control.ErrNotFound) {
		return nil, err
	}
	if err := c.org.SetRules(c.ctx, s); err != nil {
		return nil, err
	}
	return c.answerChanged(b.Name)
}

func getBudget(c *call) (any, error) {
	name := c.r.PathValue("name")
	if b := c.configured(name); b != nil {
		return c.describe(b, nil, defaultPage)
	}
	return c.answerBudget(name)
}

// updateBudget leaves the fields that the body does not have as they are. Fields that are null
// get their defaults.
func updateBudget(c *call) (any, error) {
	name := c.r.PathValue("name")
	if c.configured(name) != nil {
		return nil, errConfigured(name)
	}
	if err := intake.CheckJSON(c.body); err != nil {
		return nil, bad("%v", err)
	}
	var changes map[string]json.RawMessage
	if err := json.Unmarshal(c.body, &changes); err != nil {
		return nil, bad("the body is no object")
	}
	r, err := c.ruleNamed(name)
	if err != nil {
		return nil, err
	}
	_, err = control.Update(c.ctx, c.org, r.ID, func(r *control.Rule) error {
		fields := make(map[string]json.RawMessage)
		if err := json.Unmarshal(r.Budget, &fields); err != nil {
			return err
		}
		delete(fields, "reserve") // an option of 0.1.0
		maps.Copy(fields, changes)
		maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
		if r.Budget, err = json.Marshal(fields); err != nil {
			return err
		}
		b, err := c.app.Money().Parse(c.org.Name, r.Budget)
		switch {
		case err != nil:
			return bad("%v", err)
		case b.Name != name:
			return bad("name: a budget keeps its name, by which calls are counted; make another one")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return c.answerChanged(name)
}

// answerChanged is answerBudget for a budget that the call has changed.
func (c *call) answerChanged(name string) (any, error) {
	d, err := c.answerBudget(name)
	if err == nil {
		d.Warnings = c.budgetWarnings(&d)
	}
	return d, err
}

func deleteBudget(c *call) (any, error) {
	name := c.r.PathValue("name")
	if c.configured(name) != nil {
		return nil, errConfigured(name)
	}
	r, err := c.ruleNamed(name)
	if err != nil {
		return nil, err
	}
	return nil, control.Delete[control.Rule](c.ctx, c.org, r.ID)
}

// ownBudgets returns the budgets that count every call of the caller.
func (c *call) ownBudgets() ([]budget, error) {
	list := []budget{}
	budgets, holds, err := c.app.Money().OfKey(c.key)
	if err != nil || len(budgets) == 0 {
		return list, err
	}
	ledger, err := c.store.Credits()
	if err != nil {
		return nil, err
	}
	for i, b := range budgets {
		balance, err := ledger.Balance(c.ctx, holds[i])
		if err != nil {
			return nil, err
		}
		list = append(list, describeBudget(b, nil, []credits.Balance{balance}, 1))
	}
	return list, nil
}
