package bound

import (
	"github.com/weirhq/weir/modules/internal/lineage"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// Call bounds what a call of a model can use, whichever lane the call takes.
type Call struct {
	Request
	// Model has the limits and the prices, nil if they are not known.
	Model *catalog.Model
	// Catalog has the models of the provider that hosted tools may call.
	Catalog  *catalog.Catalog
	Provider string
	// Conditions and Tiers are what the price depends on. The request asks for the tiers.
	Conditions catalog.Conditions
	Tiers      []string
	// Bytes is the length of the request as the provider gets it.
	Bytes int64
	// Read reads what the request makes the provider read. It is called once, when needed.
	Read func() *Demand
	// Fixed returns the usage of an endpoint whose requests have no limit of output, nil for
	// any other.
	Fixed func() plugins.Usage
	// Estimated estimates the usage of a complete answer of such an endpoint, by the request alone.
	Estimated func() plugins.Usage
	// Hidden says that the stream may not show all that is charged, whatever the request says.
	Hidden bool
	// Free says that nobody pays for the call.
	Free bool

	demand *Demand // nil until Read was called
}

// MaxUsage returns an upper bound on what the call uses if each of its answers has at most
// limit tokens, 0 for as many as the request allows. The cost is unknown without a price, and
// everything is if the request does not tell what it can use.
func (c *Call) MaxUsage(limit int64) Used {
	switch {
	case c.Free:
		return Free()
	case c.Model == nil:
		return Used{}
	case c.Fixed != nil:
		u := c.Fixed()
		return Used{Cost: c.MaxCost(u), Usage: u}
	}
	d := c.reads()
	u, ok := c.Uses(c.Model, d, c.Bytes, limit)
	if !ok {
		return Used{}
	}
	return Used{Cost: c.MaxCost(u).Both(c.hosted(d)), Usage: u}
}

// reads returns what the request makes the provider read. The search for a limit that fits asks
// many times.
func (c *Call) reads() *Demand {
	if c.demand == nil {
		c.demand = c.Read()
	}
	return c.demand
}

// Lowerable returns the limits to which the output of the call can be lowered, from least on.
func (c *Call) Lowerable(least int64) Limits {
	if c.Model == nil {
		return Limits{}
	}
	l := Limits{Least: least, Asked: c.Model.OutputLimit()}
	if limit, err := c.OutputLimit(); err == nil {
		l = l.Below(limit)
	}
	return l
}

// Silent reports whether the model may write what the stream of the call does not show.
func (c *Call) Silent() bool { return c.Model != nil && c.Request.Silent(c.Model) }

// Cost returns what a usage costs that has what the provider stated: by the tier that it
// named, else by one that the request asks for, else without a tier.
func (c *Call) Cost(u plugins.Usage, tier string) (cost plugins.Cost) {
	if c.Model == nil {
		return cost
	}
	conditions := c.Conditions
	for _, conditions.Tier = range append([]string{tier}, append(c.Tiers, "")...) {
		if cost = cost.Or(c.Model.Cost(u, conditions)); cost.Valid {
			break
		}
	}
	return cost
}

// RunsAgents reports whether the model runs several agents for each answer. c may be nil.
func (c *Call) RunsAgents() bool { return c != nil && c.Model != nil && runsAgents(c.Model) }

// Hosted reports whether the request has tools that the provider runs and bills. c may be nil.
func (c *Call) Hosted() bool { return c != nil && c.demand != nil && c.demand.Hosted }

// MaxCost is an upper bound on what a usage costs.
func (c *Call) MaxCost(u plugins.Usage) plugins.Cost {
	return c.Model.MaxCost(u, c.Conditions, c.Tiers...)
}

// hosted is an upper bound on what hosted tools cost beside the tokens of the model: unknown if
// one of them runs a model that is not known.
func (c *Call) hosted(d *Demand) plugins.Cost {
	calls, cost := d.hosted.maxCalls(), plugins.KnownCost(d.hosted.cost())
	add := func(model string, usage func(*catalog.Model) plugins.Usage, times int64) {
		var maxCost plugins.Cost
		if m, ok := c.Catalog.Lookup(c.Provider, model); ok {
			maxCost = m.MaxCost(usage(m), c.Conditions)
		}
		maxCost.N *= plugins.Nanodollars(times)
		cost = cost.Both(maxCost)
	}
	for _, painter := range d.hosted.painters {
		tokens := plugins.Known(calls * ImageTokens)
		add(painter, func(*catalog.Model) plugins.Usage {
			return plugins.Usage{Input: tokens, InputImage: tokens, Output: tokens, OutputImage: tokens, Images: plugins.Known(calls)}
		}, 1)
	}
	for _, advisor := range d.hosted.advisors { // reads all that the model reads
		add(advisor, func(m *catalog.Model) plugins.Usage { return d.Usage(m, UpperBound, 0, 0, 1) }, calls)
	}
	return cost
}

// Learn tells the counts of the next turn how many tokens the provider has counted for the
// request, if it has. c may be nil.
func (c *Call) Learn(counts *lineage.Counts, input plugins.Count) {
	if c != nil {
		c.demand.Learn(counts, input)
	}
}

// Unknown returns the names of the options that were counted by their bytes alone, because Weir
// does not know what they do.
func (c *Call) Unknown() []string {
	if c == nil || c.demand == nil {
		return nil
	}
	return c.demand.unknown
}
