package llmapp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// Budget bounds what calls through the gateway may cost. A call is made only if the most that
// the call can cost fits into every budget that counts the call.
type Budget struct {
	// Name names the budget in refusals, in metrics and in /v1/budgets. It is unique in
	// its organisation. A budget with another name begins at 0.
	Name string `json:"name"`

	// Limit is what the calls may cost together in one window, in US dollars: a plain
	// decimal like `500.00`.
	Limit string `json:"limit"`

	// Window is `day`, `week`, `month`, `year`, or `total` for no end. A call belongs to
	// the window in which it began. Default: `month`.
	Window string `json:"window,omitempty"`

	// Timezone is the IANA name of the time zone whose midnight begins a window. Default:
	// UTC.
	Timezone string `json:"timezone,omitempty"`

	// Filter says which calls the budget counts, in the filter language of the query API.
	// It may name what is known before a call: `user_id`, `session_id`, `project`, `key_id`,
	// `provider`, `model`, `request_model` and properties. Default: all calls.
	Filter json.RawMessage `json:"filter,omitempty"`

	// Per gives each value of an attribute the limit for itself: `user`, `session`,
	// `project`, `key`, `provider`, `model`, `property.<name>`, or `tree`, which is the run
	// of an agent with its sub-agents, as lineage finds it. Calls without a value share one.
	// Default: all calls share the limit.
	Per string `json:"per,omitempty"`

	// Trust counts users, sessions and properties that only the caller names. Otherwise
	// those count that the key or the token stamps, and a caller cannot choose whose
	// budget pays. Default: false.
	Trust bool `json:"trust,omitempty"`

	// Wait is how long a call waits for calls in flight to end, if these hold what the call
	// needs. Default: 0, which refuses the call at once.
	Wait caddy.Duration `json:"wait,omitempty"`

	// Unpriced is what becomes of a call whose price is unknown: `refuse`, or `pass`, which
	// counts the call as 0. Default: `refuse`.
	Unpriced string `json:"on_unpriced,omitempty"`

	org       string
	limit     plugins.Nanodollars
	zone      storage.Zone
	increment storage.Increment // "" for a window without an end
	filter    storage.Filter
	per       func(*storage.Record) string // nil if all calls share the limit
	label     metric.Label
}

// DefaultWindow is that of a budget that names none, windowTotal the one without an end.
const (
	DefaultWindow = "month"
	windowTotal   = "total"
)

// BudgetWindows are what Budget.Window may be.
var BudgetWindows = []string{"day", "week", "month", "year", windowTotal}

// passUnpriced is the value of Budget.Unpriced that lets a call pass.
const passUnpriced = "pass"

// attributes are what Budget.Per may be, beside properties.
var attributes = map[string]func(*storage.Record) string{
	"user":     func(r *storage.Record) string { return r.UserID },
	"session":  func(r *storage.Record) string { return r.SessionID },
	"project":  func(r *storage.Record) string { return r.Project },
	"key":      func(r *storage.Record) string { return cmp.Or(r.KeyID, r.AuthHash) },
	"provider": func(r *storage.Record) string { return r.Provider },
	"model":    func(r *storage.Record) string { return r.Model },
	"tree":     func(r *storage.Record) string { return treeOf(r).String() },
}

// treeOf is the first call of the conversation, or of the one whose sub-agent it belongs to,
// as far as the calls before tell.
func treeOf(r *storage.Record) uuid.UUID {
	if r.RootID == uuid.Nil {
		return r.ID
	}
	return r.RootID
}

// ofCall are the values of Budget.Per that a key alone does not tell.
var ofCall = []string{"model", "provider", "session", "tree"}

// knownBefore are the fields that a filter of a budget may name.
var knownBefore = []string{"user_id", "session_id", "project", "key_id", "provider", "model", "request_model", "properties", "property_key"}

// provision checks the budget.
func (b *Budget) provision(org string) (err error) {
	b.org = org
	if b.Name == "" || len(b.Name) > maxBudgetName || strings.ContainsFunc(b.Name, func(r rune) bool { return r < ' ' }) {
		return fmt.Errorf("a budget takes a name of 1 to %d bytes, not %q", maxBudgetName, b.Name)
	}
	rate, err := catalog.ParseRate(b.Limit)
	if err != nil {
		return fmt.Errorf("budget %s: limit: %w", b.Name, err)
	}
	b.limit = rate.Nano()
	window := cmp.Or(b.Window, DefaultWindow)
	if !slices.Contains(BudgetWindows, window) {
		return fmt.Errorf("budget %s: there is no window %s, only %s", b.Name, window, strings.Join(BudgetWindows, ", "))
	}
	if window != windowTotal {
		b.increment = storage.Increment(window)
	}
	if b.Timezone != "" {
		if b.zone, err = storage.ParseTimezone(b.Timezone); err != nil {
			return fmt.Errorf("budget %s: %w", b.Name, err)
		}
	}
	if b.filter, err = storage.ParseFilter(b.Filter); err != nil {
		return fmt.Errorf("budget %s: %w", b.Name, err)
	}
	for leaf := range storage.Leaves(b.filter) {
		name := cmp.Or(leaf.Field.Name, string(leaf.Field.Group))
		if !slices.Contains(knownBefore, name) {
			return fmt.Errorf("budget %s: %s is not known before a call; a budget may name %s", b.Name, name, strings.Join(knownBefore, ", "))
		}
	}
	if b.Unpriced != "" && b.Unpriced != "refuse" && b.Unpriced != passUnpriced {
		return fmt.Errorf("budget %s: on_unpriced is refuse or pass, not %s", b.Name, b.Unpriced)
	}
	property, ofProperty := strings.CutPrefix(b.Per, "property.")
	switch {
	case b.Per == "":
	case ofProperty && property != "":
		b.per = func(r *storage.Record) string { return r.Properties[property] }
	default:
		if b.per = attributes[b.Per]; b.per == nil {
			return fmt.Errorf("budget %s: per takes %s or property.<name>, not %s", b.Name, strings.Join(slices.Sorted(maps.Keys(attributes)), ", "), b.Per)
		}
	}
	if b.Per == "session" && !b.Trust {
		return fmt.Errorf("budget %s: only callers name sessions, so that a caller chooses whose limit counts; say trust if your callers may", b.Name)
	}
	return nil
}

// maxBudgetName bounds names, in bytes.
const maxBudgetName = 100

// provisionBudgets collects the budgets of all organisations, by organisation.
func (a *App) provisionBudgets() error {
	a.budgets = make(map[string][]*Budget)
	a.budgets[DefaultName] = a.Budgets
	for _, name := range slices.Sorted(maps.Keys(a.Organisations)) {
		a.budgets[name] = slices.Concat(a.budgets[name], a.Organisations[name].Budgets)
	}
	for org, budgets := range a.budgets {
		seen := make(map[string]bool)
		for _, b := range budgets {
			err := b.provision(org)
			if err == nil && seen[b.Name] {
				err = fmt.Errorf("budget %s is given twice", b.Name)
			}
			if err != nil {
				return a.At(fmt.Errorf("org %s: %w", org, err), "org "+org, "budget "+b.Name)
			}
			seen[b.Name] = true
		}
	}
	return nil
}

// BudgetsOf returns the budgets of an organisation.
func (a *App) BudgetsOf(org string) []*Budget { return a.budgets[org] }

// account is the one of a budget that counts a call, in the window of a time.
func (b *Budget) account(r *storage.Record, at storage.Timestamp) credits.Account {
	begins, ends := b.Bounds(at)
	account := credits.Account{Org: b.org, Budget: b.Name, Begins: begins, Ends: ends}
	if b.per != nil {
		account.Value = b.per(r)
	}
	return account
}

// Bounds returns when the window of a time begins and ends, 0 and 0 for one without an end.
func (b *Budget) Bounds(at storage.Timestamp) (begins, ends storage.Timestamp) {
	if b.increment == "" {
		return 0, 0
	}
	return b.increment.Around(at, b.zone)
}

// Cap is Limit in billionths of a US dollar.
func (b *Budget) Cap() plugins.Nanodollars { return b.limit }

// counts returns the record by which a budget judges a call, nil if the budget does not
// count the call.
func (b *Budget) counts(whole, vouched *storage.Record) *storage.Record {
	r := vouched
	if b.Trust {
		r = whole
	}
	if !storage.Match(b.filter, r, func() *storage.Content { return nil }) {
		return nil
	}
	return r
}

// bounding are the budgets that count a call, each with its account.
type bounding []bound

type bound struct {
	*Budget
	hold credits.Hold
}

// bounding returns the budgets that count a call.
func (a *App) bounding(s *Spending) (all bounding) {
	budgets := a.budgets[s.Org]
	if len(budgets) == 0 {
		return nil
	}
	whole := *s.Record
	whole.Provider, whole.Model = s.target()
	if s.Account != nil {
		whole.Provider = s.Account.Provider
	}
	vouched := whole
	s.Key.vouch(&vouched)
	for _, b := range budgets {
		if r := b.counts(&whole, &vouched); r != nil {
			all = append(all, bound{b, credits.Hold{Account: b.account(r, whole.CreatedAt), Limit: b.limit}})
		}
	}
	return all
}

// vouch takes from a record what only the caller says.
func (k *Key) vouch(r *storage.Record) {
	r.UserID, r.SessionID, r.SessionName, r.SessionPath, r.Properties = "", "", "", "", nil
	if k != nil {
		k.Stamp(r)
	}
}

// BudgetsOfKey returns the accounts that count the calls of a key, whatever they say and
// whichever model they call, with their budgets.
func (a *App) BudgetsOfKey(k *Key) (budgets []*Budget, accounts []credits.Account) {
	r := new(storage.Record)
	k.vouch(r)
	now := storage.Millis(time.Now())
	for _, b := range a.budgets[k.Org()] {
		if b.counts(r, r) != nil && !slices.Contains(ofCall, b.Per) {
			budgets, accounts = append(budgets, b), append(accounts, b.account(r, now))
		}
	}
	return budgets, accounts
}

// Subject names whose calls an account of the budget counts, as in `user "ada"`.
func (b *Budget) Subject(of credits.Account) string {
	switch {
	case b.per == nil:
		return "all calls"
	case of.Value == "":
		return "calls without a " + b.Per
	}
	return fmt.Sprintf("%s %q", b.Per, of.Value)
}

var (
	budgetRefusals = metric.NewCounters("weir_budget_refusals_total", "Calls that a budget refused, by the code of the refusal.", "budget", "code")
	budgetSpent    = metric.NewCounters("weir_budget_spent_dollars_total", "What the calls cost that a budget counts, in US dollars.", "budget")
)
