package llmcontrol

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/control"
)

// What OpenAI calls rate limits and spend limits are rules: budgets of a project, or of all
// calls, with names by which they are found again.

// unlimited stands for no rate limit: the largest whole number that every client reads.
const unlimited = 1<<53 - 1

// rateKind is a number of OpenAI's rate limits that a budget can be.
type rateKind struct {
	quantity, window string
	// words stand in the name of the rule.
	words string
}

var rateKinds = []rateKind{
	{"requests", "1m", "requests a minute"},
	{"tokens", "1m", "tokens a minute"},
	{"requests", "24h", "requests a day"},
}

// name returns the name of the rule for a model in the project with a label.
func (k rateKind) name(label, model string) string {
	return label + ": " + k.words + " of " + model
}

// rateLimit is how OpenAI writes the limits of a model in a project.
type rateLimit struct {
	Object            string `json:"object"`
	ID                string `json:"id"`
	Model             string `json:"model"`
	RequestsPerMinute int64  `json:"max_requests_per_1_minute"`
	TokensPerMinute   int64  `json:"max_tokens_per_1_minute"`
	RequestsPerDay    *int64 `json:"max_requests_per_1_day,omitempty"`
}

// ratePrefix begins the ids of rate limits; the model follows.
const ratePrefix = "rl-"

func newRateLimit(model string) *rateLimit {
	return &rateLimit{Object: "project.rate_limit", ID: ratePrefix + model, Model: model, RequestsPerMinute: unlimited, TokensPerMinute: unlimited}
}

// set writes the number of a kind.
func (l *rateLimit) set(kind int, n int64) {
	switch kind {
	case 0:
		l.RequestsPerMinute = n
	case 1:
		l.TokensPerMinute = n
	default:
		l.RequestsPerDay = &n
	}
}

// rule makes a budget of the calls that a filter takes, of the project if the path names one.
func (c *call) rule(b llmapp.Budget, filter storage.Filter) (control.RuleSettings, error) {
	s := control.RuleSettings{Name: b.Name}
	if c.project != nil {
		s.Project = c.project.Label
		filter = storage.And(equals("project", s.Project), filter)
	}
	if filter != (storage.All{}) {
		b.Filter = storage.AppendJSON(nil, filter)
	}
	var err error
	if s.Budget, err = json.Marshal(b); err != nil {
		return s, err
	}
	if _, err := c.app.Money().Parse(c.org.Name, s.Budget); err != nil {
		return s, bad("%v", err)
	}
	return s, nil
}

// compare compares a field of requests with a text.
func compare(field string, op storage.Operator, text string) storage.Filter {
	return &storage.Leaf{Field: storage.LookupField(storage.RequestResponse, field), Op: op, Text: text}
}

func equals(field, text string) storage.Filter { return compare(field, storage.Equals, text) }

// ofModel is the filter for the calls of a model, which may stand after its provider, as in
// `openai/gpt-5`.
func ofModel(model string) storage.Filter {
	f := storage.Or(equals("model", model), equals("request_model", model))
	if provider, name, ok := strings.Cut(model, "/"); ok {
		f = storage.Or(f, storage.And(equals("provider", provider), equals("model", name)))
	}
	return f
}

// rateLimits returns the rate limits of the project, by model.
func (c *call) rateLimits() (map[string]*rateLimit, error) {
	rules, err := control.All[control.Rule](c.ctx, c.org, control.Page{List: control.InProject(c.project.Label)})
	if err != nil {
		return nil, err
	}
	limits := make(map[string]*rateLimit)
	for _, r := range rules {
		for i, kind := range rateKinds {
			model, ok := strings.CutPrefix(r.Object.Name, kind.name(c.project.Label, ""))
			b, err := c.app.Money().ParseStored(c.org.Name, r.Object.Budget)
			if !ok || err != nil || b.Quantity != kind.quantity || b.Window != kind.window {
				continue
			}
			if limits[model] == nil {
				limits[model] = newRateLimit(model)
			}
			n, err := strconv.ParseInt(b.Limit, 10, 64)
			if err != nil {
				return nil, err
			}
			limits[model].set(i, n)
		}
	}
	return limits, nil
}

func listRateLimits(c *call) (any, error) {
	limit, values, err := queryOf(c.r.URL.Query(), maxRatePage, "after", "before")
	if err != nil {
		return nil, err
	}
	limits, err := c.rateLimits()
	if err != nil {
		return nil, err
	}
	page := openAIPage{Object: "list", Data: []any{}}
	for _, model := range slices.Sorted(maps.Keys(limits)) {
		id := limits[model].ID
		if id <= values[0] || values[1] != "" && id >= values[1] {
			continue
		}
		if len(page.Data) == limit {
			page.HasMore = true
			break
		}
		page.add(id, limits[model])
	}
	return page, nil
}

func setRateLimit(c *call) (any, error) {
	body := struct {
		RequestsPerMinute *int64 `json:"max_requests_per_1_minute"`
		TokensPerMinute   *int64 `json:"max_tokens_per_1_minute"`
		RequestsPerDay    *int64 `json:"max_requests_per_1_day"`
	}{}
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	model, ok := strings.CutPrefix(c.r.PathValue("id"), ratePrefix)
	if err := checkName(model); !ok || err != nil {
		return nil, bad("the id of a rate limit is %s<model>", ratePrefix)
	}
	if c.project.ArchivedAt != nil {
		return nil, control.ErrArchived
	}
	var rules []control.RuleSettings
	for i, n := range []*int64{body.RequestsPerMinute, body.TokensPerMinute, body.RequestsPerDay} {
		if n == nil {
			continue
		}
		if *n < 1 || *n > unlimited {
			return nil, bad("a limit is a number from 1 to %d, which is no limit; the model permissions of the project refuse a model", unlimited)
		}
		kind := rateKinds[i]
		name := kind.name(c.project.Label, model)
		if *n == unlimited {
			rules = append(rules, control.RuleSettings{Name: name})
			continue
		}
		budget := llmapp.Budget{Name: name, Limit: strconv.FormatInt(*n, 10), Quantity: kind.quantity, Window: kind.window}
		rule, err := c.rule(budget, ofModel(model))
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	if len(rules) == 0 {
		return nil, bad("max_requests_per_1_minute, max_tokens_per_1_minute or max_requests_per_1_day is expected")
	}
	if err := c.org.SetRules(c.ctx, rules...); err != nil {
		return nil, err
	}
	limits, err := c.rateLimits()
	if err != nil {
		return nil, err
	}
	return cmp.Or(limits[model], newRateLimit(model)), nil
}

// spendLimit is how OpenAI writes what may be spent in a month.
type spendLimit struct {
	Object string `json:"object"`
	monthlyAmount
	Enforcement struct {
		Status string `json:"status"`
	} `json:"enforcement"`
}

// cent is the hundredth part of a dollar.
const cent = plugins.Nanodollars(10_000_000)

// monthlyAmount is how OpenAI writes an amount that calls may cost in a month.
type monthlyAmount struct {
	// Amount is in cents.
	Amount   int64  `json:"threshold_amount"`
	Currency string `json:"currency"`
	Interval string `json:"interval"`
}

func (m monthlyAmount) check() error {
	switch {
	case m.Currency != "USD":
		return bad("currency: USD is expected")
	case m.Interval != "month":
		return bad("interval: month is expected; /v1/budgets takes others")
	case m.Amount < 1 || m.Amount > unlimited/100:
		return bad("threshold_amount: a number of cents is expected, 1 or more")
	}
	return nil
}

// spendScope says whether a spend limit is a project's or the organisation's: object is the type
// in answers, rule the name of the rule.
type spendScope struct{ object, rule string }

// spendScope returns the scope of the spend limit that the path names.
func (c *call) spendScope() spendScope {
	if c.project == nil {
		return spendScope{"organization.spend_limit", "spend limit"}
	}
	return spendScope{"project.spend_limit", c.project.Label + ": spend limit"}
}

// find returns the rule that is the spend limit, and its budget.
func (s spendScope) find(c *call) (*control.Rule, *llmapp.Budget, error) {
	missing := control.NotFoundError("spend_limit")
	r, err := control.Named[control.Rule](c.ctx, c.org, s.rule)
	if errors.Is(err, control.ErrNotFound) {
		err = missing
	}
	if err != nil {
		return nil, nil, err
	}
	b, err := c.app.Money().ParseStored(c.org.Name, r.Budget)
	if err != nil || b.Counts() != "usd" || b.Window != "month" {
		return nil, nil, missing // the rule was made something else by its name
	}
	return r, b, nil
}

// describe writes the rule that is the spend limit.
func (s spendScope) describe(c *call) (any, error) {
	_, b, err := s.find(c)
	if err != nil {
		return nil, err
	}
	ledger, err := c.store.Credits()
	if err != nil {
		return nil, err
	}
	accounts, err := b.Counted(c.ctx, ledger)
	if err != nil {
		return nil, err
	}
	d := spendLimit{Object: s.object, monthlyAmount: monthlyAmount{int64(b.Cap() / cent), "USD", "month"}}
	d.Enforcement.Status = "inactive"
	if len(accounts) > 0 && accounts[0].Spent >= b.Cap() {
		d.Enforcement.Status = "enforcing"
	}
	return d, nil
}

func getSpendLimit(c *call) (any, error) { return c.spendScope().describe(c) }

func setSpendLimit(c *call) (any, error) {
	var body monthlyAmount
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if err := body.check(); err != nil {
		return nil, err
	}
	if c.project != nil && c.project.ArchivedAt != nil {
		return nil, control.ErrArchived
	}
	s := c.spendScope()
	budget := llmapp.Budget{Name: s.rule, Limit: fmt.Sprintf("%d.%02d", body.Amount/100, body.Amount%100), Window: "month"}
	stored, _, err := s.find(c)
	switch {
	case errors.Is(err, control.ErrNotFound):
		rule, err := c.rule(budget, storage.All{})
		if err != nil {
			return nil, err
		}
		if err := c.org.SetRules(c.ctx, rule); err != nil {
			return nil, err
		}
		return s.describe(c)
	case err != nil:
		return nil, err
	}
	if _, err := control.Update(c.ctx, c.org, stored.ID, func(r *control.Rule) error {
		budget.Stages = stagesOf(r.Alerts, plugins.Nanodollars(body.Amount)*cent)
		rule, err := c.rule(budget, storage.All{})
		r.Budget = rule.Budget
		return err
	}); err != nil {
		return nil, err
	}
	return s.describe(c)
}

func deleteSpendLimit(c *call) (any, error) {
	s := c.spendScope()
	if _, err := s.describe(c); err != nil {
		return nil, err
	}
	return deletion{Object: s.object + ".deleted", Deleted: true}, c.org.SetRules(c.ctx, control.RuleSettings{Name: s.rule})
}
