package llmapp

import (
	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/alert"
	"github.com/weirhq/weir/modules/internal/bills"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/internal/stores"
)

// The types of the configuration that other packages define, under the names by which packages
// outside of modules can use them.
type (
	// StoreConfig configures one store.
	StoreConfig = stores.Config
	// Export configures where the records of a store are sent besides.
	Export = stores.Export
	// Budget bounds what calls may cost.
	Budget = money.Budget
	// Refusals are what a budget that observes would have refused.
	Refusals = money.Refusals
	// Refusal is a recorded call that a budget would have refused.
	Refusal = money.Refusal
	// TrialSummary is what a budget would have refused of recorded calls.
	TrialSummary = money.TrialSummary
	// Stage is what happens when a part of a budget's limit is spent.
	Stage = money.Stage
	// AccountTransport sends what `llm_log` with `credentials platform` has admitted.
	AccountTransport = money.AccountTransport
	// Provider configures how the gateway reaches a provider of models.
	Provider = providers.Provider
	// API is what a module of the namespace llm.providers provides.
	API = providers.API
	// Channel is where messages about alerts go.
	Channel = alert.Channel
	// Alias is a name for models, and how a call chooses among them.
	Alias = routing.Alias
	// Choice is a model of an alias.
	Choice = routing.Choice
	// Shadow is a model that gets calls of an alias which another one has answered.
	Shadow = routing.Shadow
	// Bill is the bill of a provider for an organisation's calls.
	Bill = bills.Bill
	// AlertRule says when an alert fires, and whom it tells.
	AlertRule = alert.Rule
	// Key is an API key of one organisation.
	Key = access.Key
	// Identity admits the bearers of an issuer's tokens.
	Identity = access.Identity
	// Role is what a value of a claim allows.
	Role = access.Role
)

// BudgetWindows are what Budget.Window may be, beside durations, and LimitQuantities the quantities
// that are not money.
var BudgetWindows, LimitQuantities = money.BudgetWindows, money.LimitQuantities

// DefaultName is the name of the default store and of the default organisation.
const DefaultName = stores.DefaultName
