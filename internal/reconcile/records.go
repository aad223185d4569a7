package reconcile

import (
	"crypto/sha256"
	"slices"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// Call is what is compared of a record.
type Call struct {
	// End is Start for a call without an answer.
	Start, End time.Time
	// Model is what the provider served, and Name the record's model, which may be another by
	// an override.
	Provider, Model, Name, Tier, Geography string
	Account, ResponseID                    string
	Status                                 int64
	// Complete is false for a call that failed or broke off, and Estimated is true if Cost is
	// counted by the length of the answer.
	Complete, Cached, Subscription, Estimated bool
	Usage                                     plugins.Usage
	Cost, ListCost                            plugins.Cost
}

// Totals are what calls add up to.
type Totals struct {
	// Requests counts the calls whose usage is known.
	Requests int64
	Tokens   Tokens
	// Cost has the cost of searches, too.
	Cost, SearchCost plugins.Nanodollars
	// Unpriced counts the calls whose usage is known and whose cost is not.
	Unpriced int64
	// WithoutUsage counts the calls that a provider may have billed and whose usage is
	// unknown, Broken those of them that failed or broke off, and EstimatedCost is what their records have as their cost, which is in Cost.
	WithoutUsage, Broken int64
	EstimatedCost        plugins.Nanodollars
	// Stated is what the provider says, if it is asked, of the usage of calls in WithoutUsage, and
	// StatedCost what they cost. Asked counts the calls for which it has an answer, which may be that it
	// knows none.
	Stated     count
	StatedCost plugins.Nanodollars
	Asked      int64
	// Reasoning is the reasoning of all calls, and ReasoningApart that of the calls whose
	// output is too small to include it.
	Reasoning, ReasoningApart int64
	// Repeated are the calls whose response an earlier record has; they are in the other
	// totals, too.
	Repeated Repeated
}

// Repeated are calls that were recorded more than once.
type Repeated struct {
	Requests int64
	Tokens   Tokens
	Cost     plugins.Nanodollars
}

func (t *Totals) add(o *Totals) {
	t.Requests, t.Tokens = t.Requests+o.Requests, t.Tokens.plus(o.Tokens)
	t.Cost, t.SearchCost = t.Cost+o.Cost, t.SearchCost+o.SearchCost
	t.Unpriced, t.WithoutUsage = t.Unpriced+o.Unpriced, t.WithoutUsage+o.WithoutUsage
	t.Broken, t.EstimatedCost = t.Broken+o.Broken, t.EstimatedCost+o.EstimatedCost
	t.Stated, t.StatedCost, t.Asked = t.Stated.plus(o.Stated), t.StatedCost+o.StatedCost, t.Asked+o.Asked
	t.Reasoning, t.ReasoningApart = t.Reasoning+o.Reasoning, t.ReasoningApart+o.ReasoningApart
	t.Repeated.Requests += o.Repeated.Requests
	t.Repeated.Tokens = t.Repeated.Tokens.plus(o.Repeated.Tokens)
	t.Repeated.Cost += o.Repeated.Cost
}

// series are the calls of a model in a service tier with an account.
type series struct{ model, tier, account string }

// hours are whole hours since 1970.
type hours int64

func hourOf(t time.Time) hours {
	seconds := t.Unix()
	if seconds%3600 < 0 {
		seconds -= 3600
	}
	return hours(seconds / 3600)
}

func dayOfHour(h hours) Day {
	if h%24 < 0 {
		h -= 24
	}
	return Day(h / 24)
}

// span is when calls began and ended.
type span struct{ start, end hours }

// Records add up calls. Their memory grows with hours, models and tiers, and with the calls of
// two days.
type Records struct {
	catalog   *catalog.Catalog
	bill      *Bill
	byAccount bool

	totals map[series]map[span]*Totals
	// names are the spellings of a model in records.
	names map[string][]string
	// responses are the ids of the responses of two days, as hashes.
	responses, earlier map[[16]byte]struct{}
	day                Day

	volume           volume
	subscriptions    int64
	subscriptionCost plugins.Cost
}

// NewRecords makes the totals that are compared with a bill. Accounts are kept apart if byAccount
// is true.
func NewRecords(c *catalog.Catalog, bill *Bill, byAccount bool) *Records {
	return &Records{
		catalog: c, bill: bill, byAccount: byAccount,
		totals: make(map[series]map[span]*Totals), names: make(map[string][]string),
		responses: make(map[[16]byte]struct{}), earlier: make(map[[16]byte]struct{}),
	}
}

// Add adds a call. Calls come in the order in which they began.
func (r *Records) Add(c *Call) {
	switch {
	case c.Cached:
		return // no provider answered
	case c.Subscription:
		r.subscriptions++
		r.subscriptionCost = r.subscriptionCost.Plus(c.ListCost)
		return
	}
	u := &c.Usage
	r.volume.addAmounts(c.Cost.N)
	r.volume.addCounts(u.Input.N, u.Output.N, u.CacheRead.N, u.CacheWrite.N, u.CacheWrite1h.N, u.Reasoning.N, u.BilledInput.N, u.BilledOutput.N)
	t := r.totalsOf(c)
	if !c.Usage.Input.Valid && !c.Usage.Output.Valid {
		if c.mayBeBilled() {
			t.WithoutUsage++
			if !c.Complete {
				t.Broken++
			}
			t.EstimatedCost += c.Cost.N
			r.bill.generations.add(c, t)
		}
		t.Cost += c.Cost.N
		return
	}
	tokens := tokensOf(c.Usage, r.bill.States)
	t.Requests++
	t.Tokens = t.Tokens.plus(tokens)
	t.Cost += c.Cost.N
	if !c.Cost.Valid {
		t.Unpriced++
	}
	t.SearchCost += r.searchCost(c)
	if reasoning := c.Usage.Reasoning.N; reasoning > 0 {
		t.Reasoning += reasoning
		if reasoning > c.Usage.Output.N {
			t.ReasoningApart += reasoning
		}
	}
	if r.repeats(c) {
		t.Repeated.Requests++
		t.Repeated.Tokens = t.Repeated.Tokens.plus(tokens)
		t.Repeated.Cost += c.Cost.N
	}
}

// mayBeBilled reports whether a provider may have billed a call that states no usage: a stream that
// was not asked for it has a response all the same. Refusals cost nothing; 499 is a client that left.
func (c *Call) mayBeBilled() bool {
	return c.Estimated || c.ResponseID != "" || !c.Complete || c.Status == 0 || c.Status == storage.StatusClientLeft || c.Status >= 500
}

func (r *Records) totalsOf(c *Call) *Totals {
	model := r.model(c.Provider, c.Model)
	if names := r.names[model]; c.Name != "" && !slices.Contains(names, c.Name) {
		r.names[model] = append(names, c.Name)
	}
	s := series{model: model}
	if !r.bill.WithoutTiers {
		s.tier = catalog.TierName(c.Tier)
	}
	if r.byAccount {
		s.account = c.Account
	}
	spans := r.totals[s]
	if spans == nil {
		spans = make(map[span]*Totals)
		r.totals[s] = spans
	}
	at := span{hourOf(c.Start), hourOf(c.End)}
	t := spans[at]
	if t == nil {
		t = new(Totals)
		spans[at] = t
	}
	return t
}

// model is the catalogue's name of a model, so that the names of a bill and of records meet.
func (r *Records) model(provider, name string) string {
	if m, ok := r.catalog.Lookup(provider, name); ok {
		return m.ID
	}
	return name
}

// searchCost is the part of a call's cost that its searches are.
func (r *Records) searchCost(c *Call) plugins.Nanodollars {
	if !r.bill.SearchesApart || c.Usage.WebSearches.N == 0 || !c.Cost.Valid {
		return 0
	}
	without := c.Usage
	without.WebSearches = plugins.Count{}
	conditions := catalog.Conditions{At: c.Start, Tier: c.Tier, Geography: c.Geography}
	with, rest := r.catalog.Cost(c.Provider, c.Model, c.Usage, conditions), r.catalog.Cost(c.Provider, c.Model, without, conditions)
	if !with.Valid || !rest.Valid {
		return 0
	}
	return with.N - rest.N
}

// repeats reports whether an earlier call of the last two days has the response of this one.
func (r *Records) repeats(c *Call) bool {
	if c.ResponseID == "" {
		return false
	}
	if day := DayOf(c.Start); day != r.day {
		r.day, r.earlier = day, r.responses
		r.responses = make(map[[16]byte]struct{})
	}
	sum := sha256.Sum256([]byte(c.Provider + "\x00" + c.ResponseID))
	key := [16]byte(sum[:16])
	if _, ok := r.responses[key]; ok {
		return true
	}
	if _, ok := r.earlier[key]; ok {
		return true
	}
	r.responses[key] = struct{}{}
	return false
}
