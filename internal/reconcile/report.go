package reconcile

import (
	"encoding/json"

	"github.com/weirhq/weir/plugins"
)

// Reason is where a difference comes from.
type Reason string

// The reasons. A difference of the first four changes days or names, and not the sum of the bill.
const (
	TimeZone Reason = "time_zone" // the bill has the days of another time zone
	Timing   Reason = "timing"    // billed on another day than recorded
	Tier     Reason = "tier"      // billed in another service tier than recorded
	Cache    Reason = "cache"     // billed as another kind of cache use than recorded

	Outside   Reason = "outside"   // at another key, or not through Weir
	Lost      Reason = "lost"      // Weir saw the calls and lost their records
	Failed    Reason = "failed"    // calls that failed or broke off without a usage
	NoUsage   Reason = "no_usage"  // calls whose answers state no usage
	Reasoning Reason = "reasoning" // output that the answers do not count
	Duplicate Reason = "duplicate" // recorded more than once
	Unbilled  Reason = "unbilled"  // recorded, and not on the bill

	Price    Reason = "price"    // the price of the bill is not that of the records
	Discount Reason = "discount" // all prices are lower by the same part
	Unpriced Reason = "unpriced" // calls that have no cost, because no price is known
	Unknown  Reason = "unknown"
)

// Difference is a part of what was billed and not recorded. It is negative if it was recorded and
// not billed.
type Difference struct {
	Day    Day    `json:"day"`
	Model  string `json:"model"`
	Tier   string `json:"service_tier"`
	Reason Reason `json:"reason"`
	// Account is the label of the provider in Weir, and Key the provider's id of its key; ""
	// if the difference is of no particular one.
	Account string `json:"account,omitempty"`
	Key     string `json:"key,omitempty"`
	// Explanation is a sentence for people.
	Explanation string `json:"explanation"`
	// Requests are unknown where the bill does not count them.
	Requests plugins.Count `json:"requests"`
	Tokens   TokenCounts   `json:"tokens"`
	// Cost is in US dollars, unknown where the price is.
	Cost plugins.Cost `json:"cost"`
	// Query is a command that shows the calls, "" if no record has the model. Names are the models as
	// records spell them, and Condition is a further term of the filter; Compare sets these, and its
	// caller the command.
	Query     string   `json:"query"`
	Names     []string `json:"-"`
	Condition string   `json:"-"`
	// Filter is the same in the filter language of the query API, nil without a Query.
	Filter json.RawMessage `json:"filter,omitempty"`
	// stated is true if the provider states the cost, and no price of the catalogue is part of it.
	stated bool
}

// TokenCounts are Tokens as reports have them.
type TokenCounts struct {
	Total        int64 `json:"total"`
	Input        int64 `json:"input"`
	CacheRead    int64 `json:"cache_read"`
	CacheWrite   int64 `json:"cache_write"`
	CacheWrite1h int64 `json:"cache_write_1h"`
	Output       int64 `json:"output"`
}

func countsOf(t Tokens) TokenCounts {
	return TokenCounts{t.Total(), t[Input], t[CacheRead], t[CacheWrite], t[CacheWrite1h], t[Output]}
}

func (t TokenCounts) plus(o TokenCounts) TokenCounts {
	return TokenCounts{t.Total + o.Total, t.Input + o.Input, t.CacheRead + o.CacheRead, t.CacheWrite + o.CacheWrite, t.CacheWrite1h + o.CacheWrite1h, t.Output + o.Output}
}

// Sum is all that was billed, or recorded.
type Sum struct {
	Requests plugins.Count `json:"requests"`
	Tokens   TokenCounts   `json:"tokens"`
	Cost     plugins.Cost  `json:"cost"`
}

// Line is what a model has on a day of the bill and of the records. Billed is Recorded, the
// Differences of the day and model and Rounding together. If the bill's costs are of days alone, that
// holds for tokens only: the costs of all models are in a line without a model, and the Differences of
// a model have their part of them.
type Line struct {
	Day Day `json:"day"`
	// Model is "" for costs of a day, and "web search" for those of searches.
	Model    string       `json:"model"`
	Billed   Sum          `json:"billed"`
	Recorded Sum          `json:"recorded"`
	Rounding plugins.Cost `json:"rounding"`
}

// Report is what a comparison finds. Billed is Recorded, the Differences and Rounding together.
type Report struct {
	Providers []string `json:"providers"`
	// From and To are the first and the last day, in UTC.
	From Day `json:"from"`
	To   Day `json:"to"`
	// Agrees is true without differences.
	Agrees   bool         `json:"agrees"`
	Billed   Sum          `json:"billed"`
	Recorded Sum          `json:"recorded"`
	Rounding plugins.Cost `json:"rounding"`
	// Lines are the same by day and model, in this order.
	Lines       []*Line      `json:"lines"`
	Differences []Difference `json:"differences"`
	// Incomparable is what the figures above do not include.
	Incomparable []Item `json:"incomparable"`
}
