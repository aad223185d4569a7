package money

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/google/uuid"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/storage"
	"github.com/weirhq/weir/storage/credits"
)

// Budget bounds what calls may cost, or how many tokens they use, how many there are, or how
// many run at once. A call is made only if the upper bound on its use fits into every
// budget that counts the call.
type Budget struct {
	// Name names the budget in refusals, in metrics and in /v1/budgets. It is unique in
	// its organisation. A budget with another name begins at 0.
	Name string `json:"name"`

	// Limit is what the calls may use together in one window: US dollars as a plain
	// decimal like `500.00`, or a whole number of another quantity.
	Limit string `json:"limit"`

	// Quantity is what the budget counts: `usd`, `tokens`, `input_tokens`,
	// `output_tokens`, `uncached_tokens` (all tokens not read from a provider's cache),
	// `requests`, or `concurrent` (running calls). Default: `usd`.
	Quantity string `json:"quantity,omitempty"`

	// Window is `day`, `week`, `month`, `year`, `total` for no end, or a duration like
	// `1m` or `24h` for a moving window, which always ends now. A call belongs to the
	// window in which it began. `concurrent` takes no window. Default: `month` for `usd`,
	// else `1m`.
	Window string `json:"window,omitempty"`

	// Timezone is the IANA name of the time zone whose midnight begins a window. Default:
	// UTC.
	Timezone string `json:"timezone,omitempty"`

	// Since is a day such as `2026-11-01`, from its midnight in Timezone, or a time such as
	// `2026-11-01T12:00:00Z`. A new budget begins with the cost of the window's records
	// since then. Later changes of Since have no effect. Default: a new budget begins at 0.
	Since string `json:"since,omitempty"`

	// Filter says which calls the budget counts, in the filter language of the query API.
	// It may use fields that are known before a call: `user_id`, `session_id`, `project`,
	// `key_id`, `provider`, `model`, `request_model` and properties. Default: all calls.
	Filter json.RawMessage `json:"filter,omitempty"`

	// Per gives each value of an attribute its own limit: `user`, `session`, `project`,
	// `key`, `provider`, `model`, `property.<name>`, or `tree`, which is an agent run with
	// its sub-agents, as lineage finds it. Calls without a value share one limit. Default:
	// all calls share the limit.
	Per string `json:"per,omitempty"`

	// Trust believes the users, sessions and properties that callers name. Otherwise only
	// those count that the key or the token sets or vouches for, so that a caller cannot
	// choose whose budget pays. Default: false.
	Trust bool `json:"trust,omitempty"`

	// Wait is how long a call waits for calls in flight to release what it needs, or for a
	// moving window to have room. Default: 0, which refuses the call at once.
	Wait caddy.Duration `json:"wait,omitempty"`

	// Cut lets a stream begin whose maximum exceeds the rest, and ends the stream at the
	// rest, as if the model had reached its output limit. Default: false.
	Cut bool `json:"cut,omitempty"`

	// Stages say what happens when parts of Limit are spent in a window. In any case, calls
	// that do not fit into the rest are refused. Default: none.
	Stages []*Stage `json:"stages,omitempty"`

	// Unpriced says what happens to a call whose price is unknown: `refuse`, or `pass`, which
	// counts the call as 0. Default: `refuse`.
	Unpriced string `json:"on_unpriced,omitempty"`

	// Observe counts calls and reports which of them the budget would have refused, and refuses,
	// lowers, delays and diverts none. A budget that comes to refuse goes on with what it has
	// counted. Default: false.
	Observe bool `json:"observe,omitempty"`

	budgetTerms
}

// budgetTerms are the options of a budget after provision.
type budgetTerms struct {
	org         string
	limit       plugins.Nanodollars
	zone        storage.Zone
	quantity    *quantity
	increment   storage.Increment // "" for a rolling window, and for one without an end
	rolling     credits.Rolling   // 0 unless the window moves
	filter      storage.Filter
	program     *storage.Program             // the compiled filter
	per         func(*storage.Record) string // nil if all calls share the limit
	label       metric.Label
	callerLimit *callerLimit      // nil unless the caller of a call set the limit
	since       storage.Timestamp // 0 unless a new budget begins with records
	begun       *atomic.Bool      // Begin is done; nil without since
}

// windowTotal is the value of Budget.Window for a window without an end.
const windowTotal = "total"

// minRolling and maxRolling bound windows that move.
const (
	minRolling = time.Second
	maxRolling = 366 * 24 * time.Hour
)

// BudgetWindows are what Budget.Window may be, beside durations.
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

// Attributes are the names of attributes, in their order.
var Attributes = slices.Sorted(maps.Keys(attributes))

// treeOf returns the id of the first call of the agent run that a call belongs to: of its conversation,
// or of the one that started the sub-agent.
func treeOf(r *storage.Record) uuid.UUID {
	if r.RootID == uuid.Nil {
		return r.ID
	}
	return r.RootID
}

// callAttributes are the values of Budget.Per that depend on the call and not only on its key.
var callAttributes = []string{"model", "provider", "session", "tree"}

// filterFields are the fields that a filter of a budget may name: those that are known before a call.
var filterFields = []string{"user_id", "session_id", "project", "key_id", "provider", "model", "request_model", "properties", "property_key"}

// provision checks the budget, whose stages may use the aliases.
func (b *Budget) provision(org string, isAlias func(name string) bool) (err error) {
	b.org = org
	if b.Name == "" || len(b.Name) > maxBudgetName || strings.ContainsFunc(b.Name, func(r rune) bool { return r < ' ' }) {
		return fmt.Errorf("a budget takes a name of 1 to %d bytes, not %q", maxBudgetName, b.Name)
	}
	if b.quantity = findQuantity(cmp.Or(b.Quantity, dollars.name)); b.quantity == nil {
		return fmt.Errorf("budget %s: quantity is %s, not %s", b.Name, strings.Join(Quantities, ", "), b.Quantity)
	}
	if b.limit, err = b.quantity.parse(b.Limit); err != nil {
		return fmt.Errorf("budget %s: limit: %w", b.Name, err)
	}
	if err := b.provisionWindow(); err != nil {
		return fmt.Errorf("budget %s: %w", b.Name, err)
	}
	if err := b.provisionStages(isAlias); err != nil {
		return fmt.Errorf("budget %s: %w", b.Name, err)
	}
	if b.Timezone != "" {
		if b.zone, err = storage.ParseTimezone(b.Timezone); err != nil {
			return fmt.Errorf("budget %s: %w", b.Name, err)
		}
	}
	if err := b.provisionFilter(); err != nil {
		return fmt.Errorf("budget %s: %w", b.Name, err)
	}
	if b.Unpriced != "" && b.Unpriced != "refuse" && b.Unpriced != passUnpriced {
		return fmt.Errorf("budget %s: on_unpriced is refuse or pass, not %s", b.Name, b.Unpriced)
	}
	if err := b.provisionPer(); err != nil {
		return fmt.Errorf("budget %s: %w", b.Name, err)
	}
	if err := b.provisionSince(); err != nil {
		return fmt.Errorf("budget %s: %w", b.Name, err)
	}
	if b.Per == "session" && !b.Trust {
		return fmt.Errorf("budget %s: only callers name sessions, so that a caller chooses whose limit counts; say trust if your callers may", b.Name)
	}
	return nil
}

// provisionFilter parses Filter.
func (b *Budget) provisionFilter() (err error) {
	if b.filter, err = storage.ParseFilter(b.Filter); err != nil {
		return err
	}
	b.program = storage.Compile(b.filter, nil)
	for leaf := range storage.Leaves(b.filter) {
		name := cmp.Or(leaf.Field.Name, string(leaf.Field.Group))
		if !slices.Contains(filterFields, name) {
			return fmt.Errorf("%s is not known before a call; a budget may name %s", name, strings.Join(filterFields, ", "))
		}
	}
	return nil
}

// provisionPer parses Per.
func (b *Budget) provisionPer() error {
	property, ofProperty := strings.CutPrefix(b.Per, propertyPrefix)
	switch {
	case b.Per == "":
	case ofProperty && property != "":
		b.per = func(r *storage.Record) string { return r.Properties[property] }
	default:
		if b.per = attributes[b.Per]; b.per == nil {
			return fmt.Errorf("per takes %s or property.<name>, not %s", strings.Join(Attributes, ", "), b.Per)
		}
	}
	return nil
}

// provisionWindow parses Window, and sets its default.
func (b *Budget) provisionWindow() error {
	switch {
	case b.quantity == concurrent && b.Window != "":
		return errors.New("concurrent counts the calls that run now, and takes no window")
	case b.quantity == concurrent:
		b.Window = windowTotal
	case b.Window == "" && b.quantity == dollars:
		b.Window = "month"
	case b.Window == "":
		b.Window = "1m"
	}
	if b.Window == windowTotal {
		return nil
	}
	if slices.Contains(BudgetWindows, b.Window) {
		b.increment = storage.Increment(b.Window)
		return nil
	}
	length, err := caddy.ParseDuration(b.Window)
	if err != nil || length < minRolling || length > maxRolling {
		return fmt.Errorf("there is no window %s, only %s, and durations of %s to 366d", b.Window, strings.Join(BudgetWindows, ", "), minRolling)
	}
	if b.Timezone != "" {
		return fmt.Errorf("a window of %s moves with the time, and has no time zone", b.Window)
	}
	b.rolling = credits.Rolling(length.Milliseconds())
	return nil
}

// propertyPrefix begins the name of a property in Budget.Per.
const propertyPrefix = "property."

// maxBudgetName bounds names, in bytes.
const maxBudgetName = 100

// properties returns the names of the properties that the budget counts by.
func (b *Budget) properties() (names []string) {
	if name, ok := strings.CutPrefix(b.Per, propertyPrefix); ok {
		names = append(names, name)
	}
	for leaf := range storage.Leaves(b.filter) {
		switch leaf.Field.Name {
		case "properties":
			names = append(names, leaf.Key)
		case "property_key":
			names = append(names, leaf.Text)
		}
	}
	return names
}

// ReadBodies reports whether one of the budgets counts by something that only the body of a call has.
func ReadBodies(budgets []*Budget) bool {
	return slices.ContainsFunc(budgets, func(b *Budget) bool {
		return b.quantity.metered() || len(b.Filter) > 0 || !slices.Contains([]string{"", "project", "key", "provider"}, b.Per)
	})
}

// hold returns the account in which the budget counts a call, in the window at a time.
func (b *Budget) hold(r *storage.Record, at storage.Timestamp) credits.Hold {
	h := credits.Hold{Account: credits.Account{Org: b.org, Budget: b.account()}, Limit: b.limit, Rolling: b.rolling}
	if b.Observe {
		h.Limit = math.MaxInt64
	}
	h.Begins, h.Ends = b.Bounds(at)
	if b.per != nil {
		h.Value = b.per(r)
	}
	return h
}

// account returns the name of the budget's accounts in the ledger. It depends on the quantity, so that
// a budget whose quantity changes begins at 0.
func (b *Budget) account() string {
	if b.quantity == dollars {
		return b.Name
	}
	return b.Name + credits.QuantityMark + b.quantity.name
}

// Bounds returns when the window of a time begins and ends, 0 and 0 for one without an end.
// For a rolling window, they are those of its newest step.
func (b *Budget) Bounds(at storage.Timestamp) (begins, ends storage.Timestamp) {
	switch {
	case b.rolling > 0:
		return b.rolling.Around(at)
	case b.increment == "":
		return 0, 0
	}
	return b.increment.Around(at, b.zone)
}

// Rolls reports whether the window moves with the time.
func (b *Budget) Rolls() bool { return b.rolling > 0 }

// Counts returns the name of the quantity that the budget counts.
func (b *Budget) Counts() string { return b.quantity.name }

// Cap returns Limit in the unit of the ledger.
func (b *Budget) Cap() plugins.Nanodollars { return b.limit }

// Counted returns what the budget counts now, by value.
func (b *Budget) Counted(ctx context.Context, ledger credits.Ledger) ([]credits.Balance, error) {
	return ledger.Counted(ctx, b.hold(new(storage.Record), storage.Millis(time.Now())))
}

// Subject returns whose calls an account of the budget counts, as in `user "ada"`.
func (b *Budget) Subject(a credits.Account) string {
	switch {
	case b.per == nil && len(b.Filter) > 0:
		return "the calls that it counts"
	case b.per == nil:
		return "all calls"
	case a.Value == "":
		return "calls without a " + b.Per
	}
	return fmt.Sprintf("%s %q", b.Per, a.Value)
}
