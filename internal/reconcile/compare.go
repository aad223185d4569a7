package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// Options are those of a comparison.
type Options struct {
	Window Window
	// Keys are the provider's ids of the keys, or projects, that calls through Weir use, each
	// with the account that has it, "" for any. Without Keys, every key is taken for one of
	// Weir's, unless none of its calls are recorded. See [CheckKeys].
	Keys map[string]string
	// Models are the models of the bill's names, for names that have other words.
	Models map[string]string
	// Losses are the calls that Weir saw and lost, nil if they are not known.
	Losses []Loss
}

// CheckKeys refuses Keys of which some have an account and others have none: usage at a key without one
// would be compared with no account's calls.
func CheckKeys(keys map[string]string) error {
	of := slices.Collect(maps.Values(keys))
	if slices.Contains(of, "") && slices.ContainsFunc(of, func(account string) bool { return account != "" }) {
		return errors.New("some keys have a label and others have none: give every key a label, or none")
	}
	return nil
}

// ByAccount reports whether the accounts of Weir are compared apart.
func (o *Options) ByAccount() bool {
	for _, account := range o.Keys {
		if account != "" {
			return true
		}
	}
	return false
}

// Loss is a number of calls of a time that have no record.
type Loss struct {
	From, To time.Time
	Calls    int64
}

// group is what is compared: the calls of a series on a day.
type group struct {
	day Day
	series
}

// count is what a bill has of a group.
type count struct {
	requests int64
	tokens   Tokens
}

func (c count) plus(o count) count { return count{c.requests + o.requests, c.tokens.plus(o.tokens)} }
func (c count) negated() count     { return count{-c.requests, c.tokens.negated()} }

// comparison explains the difference of one group after the other.
type comparison struct {
	bill    *Bill
	records *Records
	Options

	// billed is without the keys that are not Weir's, whose usage is in byKey alone.
	billed   map[group]count
	byKey    map[string]map[group]count
	recorded map[group]*Totals
	// rest is what is not explained yet.
	rest map[group]count
	// costs are the costs of differences, by day and model. unknown are those of the costs
	// that lack a price.
	costs   map[modelDay]plugins.Nanodollars
	unknown map[modelDay]bool
	lines   map[modelDay]*Line
	report  *Report
	volume  volume
	// withoutTokens are the models whose tokens the bill does not state.
	withoutTokens map[string]bool
	// byWords finds the models of bills with OwnNames.
	byWords map[string]string
}

type modelDay struct {
	day   Day
	model string
}

// Compare compares a bill with records. Both have some days more than the window. It asks a provider that
// states the usage of single calls for those whose records have none. The error is [ErrOverflow], or
// that of the provider.
func Compare(ctx context.Context, bill *Bill, records *Records, options Options) (*Report, error) {
	if err := bill.readGenerations(ctx, &records.volume); err != nil {
		return nil, err
	}
	c := &comparison{
		bill: bill, records: records, Options: options,
		billed: make(map[group]count), byKey: make(map[string]map[group]count),
		costs: make(map[modelDay]plugins.Nanodollars), unknown: make(map[modelDay]bool), lines: make(map[modelDay]*Line),
		report: &Report{Providers: bill.Providers, From: options.Window.From, To: options.Window.To - 1, Lines: []*Line{}, Differences: []Difference{}, Incomparable: []Item{}},
	}
	c.volume = records.volume
	c.addBill()
	if err := c.volume.check(); err != nil {
		return nil, err
	}
	c.recorded = records.byDay(shift{})
	if bill.OwnNames {
		c.byWords = records.byWords()
	}
	c.withoutTokens = make(map[string]bool)
	for model := range bill.WithoutTokens {
		c.withoutTokens[c.modelOf(model)] = true
	}
	c.addUsage()
	c.compareTokens()
	c.compareCosts()
	c.listIncomparable()
	slices.SortStableFunc(c.report.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Tier, b.Tier))
	})
	c.report.Lines = slices.AppendSeq(c.report.Lines, maps.Values(c.lines))
	slices.SortFunc(c.report.Lines, func(a, b *Line) int {
		return cmp.Or(cmp.Compare(a.Day, b.Day), cmp.Compare(a.Model, b.Model))
	})
	c.report.Agrees = len(c.report.Differences) == 0
	return c.report, c.volume.check()
}

// addBill adds what the bill has to the volume.
func (c *comparison) addBill() {
	for i := range c.bill.Usage {
		c.volume.addCounts(c.bill.Usage[i].Requests)
		c.volume.addCounts(c.bill.Usage[i].Tokens[:]...)
	}
	for i := range c.bill.Costs {
		c.volume.addAmounts(c.bill.Costs[i].Amount.Nanodollars, c.bill.Costs[i].Amount.Rounding)
	}
}

// addUsage adds up the usage of the bill.
func (c *comparison) addUsage() {
	padded := c.Window.Padded()
	var total count
	for _, u := range c.bill.Usage {
		if !padded.contains(u.Day) || c.withoutTokens[c.modelOf(u.Model)] {
			continue
		}
		g := group{u.Day, series{model: c.modelOf(u.Model), tier: catalog.TierName(u.Tier)}}
		account, known := c.accountOf(u)
		g.account = account
		n := count{u.Requests, u.Tokens}
		if c.byKey[u.Key] == nil {
			c.byKey[u.Key] = make(map[group]count)
		}
		c.byKey[u.Key][g] = c.byKey[u.Key][g].plus(n)
		if c.Window.contains(u.Day) {
			total = total.plus(n)
			line := c.line(modelDay{g.day, g.model})
			line.Billed.Requests.N += n.requests
			line.Billed.Tokens = line.Billed.Tokens.plus(countsOf(n.tokens))
		}
		if known {
			c.billed[g] = c.billed[g].plus(n)
		}
	}
	c.report.Billed = Sum{Requests: c.requests(total.requests), Tokens: countsOf(total.tokens)}
}

// line returns the line of a model on a day.
func (c *comparison) line(at modelDay) *Line {
	if c.lines[at] == nil {
		c.lines[at] = &Line{Day: at.day, Model: at.model, Billed: Sum{Requests: c.requests(0)}, Recorded: Sum{Requests: plugins.Known(0)}}
	}
	return c.lines[at]
}

// modelOf is the catalogue's name of a model of the bill.
func (c *comparison) modelOf(name string) string {
	if model, ok := c.Models[name]; ok {
		name = model
	}
	if c.bill.OwnNames {
		for _, without := range [][]string{skuWords, slices.Concat(skuWords, modalities)} {
			if model := c.byWords[wordsOf(periodPattern.ReplaceAllString(name, ""), without...)]; model != "" {
				return model
			}
		}
	}
	for _, provider := range c.bill.Providers {
		if model := c.records.model(provider, name); model != name {
			return model
		}
	}
	return name
}

// accountOf is the account of the key of a usage. known is false if the key is not Weir's.
func (c *comparison) accountOf(u Usage) (account string, known bool) {
	if len(c.Keys) == 0 {
		return "", true
	}
	for _, id := range []string{u.Key, u.Project} {
		if account, known = c.Keys[id]; known {
			return account, true
		}
	}
	return "", false
}

// requests is a number of requests if the bill counts them.
func (c *comparison) requests(n int64) plugins.Count {
	return plugins.Count{N: n, Valid: c.bill.CountsRequests}
}

// difference is what is billed and not recorded. Requests alone are no difference: some providers
// count those that fail.
func (c *comparison) difference(recorded map[group]*Totals) map[group]count {
	difference := maps.Clone(c.billed)
	for g, t := range recorded {
		difference[g] = difference[g].plus(count{-t.Requests, t.Tokens.negated()})
	}
	for g, n := range difference {
		if !c.bill.CountsRequests {
			n.requests = 0
		}
		if n.tokens == (Tokens{}) || !c.Window.Padded().contains(g.day) || c.withoutTokens[g.model] {
			delete(difference, g)
			continue
		}
		difference[g] = n
	}
	return difference
}

// groups are those whose difference is not explained, in order.
func (c *comparison) groups() []group {
	return slices.SortedFunc(maps.Keys(c.rest), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.model, b.model), cmp.Compare(a.tier, b.tier), cmp.Compare(a.account, b.account))
	})
}

// explain takes a part out of what is not explained. The cost of the part is by the catalogue
// unless it is given.
func (c *comparison) explain(g group, part count, reason Reason, explanation string, change func(*Difference)) {
	n := c.rest[g].plus(part.negated())
	if c.rest[g] = n; n == (count{}) {
		delete(c.rest, g)
	}
	d := Difference{
		Day: g.day, Model: g.model, Tier: g.tier, Account: g.account, Reason: reason, Explanation: explanation,
		Requests: c.requests(part.requests), Tokens: countsOf(part.tokens), Cost: c.price(g, part.tokens),
		Names: c.records.names[g.model],
	}
	if change != nil {
		change(&d)
	}
	c.add(d)
}

// add adds a difference to the report, if its day is in the window.
func (c *comparison) add(d Difference) {
	if !c.Window.contains(d.Day) {
		return
	}
	if !c.bill.WithoutCost[d.Tier] {
		at := modelDay{d.Day, d.Model}
		c.costs[at] += d.Cost.N
		c.unknown[at] = c.unknown[at] || !d.Cost.Valid
	}
	c.report.Differences = append(c.report.Differences, d)
}

// price is what tokens cost by the catalogue; negative counts make it less.
func (c *comparison) price(g group, t Tokens) plugins.Cost {
	var more, less Tokens
	for k, n := range t {
		more[k], less[k] = max(n, 0), max(-n, 0)
	}
	// The prices of long inputs are for calls, and this is a sum of calls.
	conditions := catalog.Conditions{At: g.day.Time().Add(12 * time.Hour), Tier: g.tier, Longest: 1}
	for _, provider := range c.bill.Providers {
		plus := c.records.catalog.Cost(provider, g.model, more.usage(), conditions)
		minus := c.records.catalog.Cost(provider, g.model, less.usage(), conditions)
		if plus.Valid && minus.Valid {
			c.volume.addAmounts(plus.N, minus.N)
			return plugins.KnownCost(plus.N - minus.N)
		}
	}
	return plugins.Cost{}
}

// listIncomparable adds what no figure of the report includes.
func (c *comparison) listIncomparable() {
	for _, item := range c.bill.Incomparable {
		if item.Day == nil || c.Window.contains(*item.Day) {
			c.report.Incomparable = append(c.report.Incomparable, item)
		}
	}
	for _, model := range slices.Sorted(maps.Keys(c.withoutTokens)) {
		c.report.Incomparable = append(c.report.Incomparable, Item{Description: model + ": the tokens, which the bill does not state; only costs are compared"})
	}
	if n := c.records.subscriptions; n > 0 {
		c.report.Incomparable = append(c.report.Incomparable, Item{
			Description: fmt.Sprintf("calls that a subscription paid, at list prices: %d", n),
			Amount:      c.records.subscriptionCost,
		})
	}
	var tiers plugins.Nanodollars
	for g, t := range c.recorded {
		if c.Window.contains(g.day) && c.bill.WithoutCost[g.tier] {
			tiers += t.Cost
		}
	}
	if tiers != 0 {
		c.report.Incomparable = append(c.report.Incomparable, Item{
			Description: "calls in a service tier that is paid in advance and whose costs the bill lacks, at list prices", Amount: plugins.KnownCost(tiers),
		})
	}
}
