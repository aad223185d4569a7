package reconcile

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/weirhq/weir/plugins"
)

// searches stands for the model of the costs of searches.
const searches = "web search"

// dayCost compares the costs of a model on a day.
type dayCost struct {
	modelDay
	billed, recorded, rounding plugins.Nanodollars
	// expected is what the records and the differences of tokens cost.
	expected plugins.Nanodollars
	// estimate is the part of expected that calls without a usage have.
	estimate plugins.Nanodollars
	unpriced int64
	// unknown is true if the costs of some differences of tokens are.
	unknown bool
}

func (d *dayCost) rest() plugins.Nanodollars { return d.billed - d.expected }
func (d *dayCost) agrees() bool              { return max(d.rest(), -d.rest()) <= d.rounding }

// compareCosts explains what remains of the differences of costs when those of tokens are priced.
func (c *comparison) compareCosts() {
	if len(c.bill.Costs) == 0 {
		if len(c.bill.Usage) > 0 {
			c.report.Incomparable = append(c.report.Incomparable, Item{Description: "the bill has no costs"})
		}
		return
	}
	days := c.dayCosts()
	discount := discountOf(days)
	var rounding plugins.Nanodollars
	for _, d := range days {
		line := c.line(d.modelDay)
		line.Billed.Cost, line.Recorded.Cost, line.Rounding = plugins.KnownCost(d.billed), plugins.KnownCost(d.recorded), plugins.KnownCost(0)
		if d.agrees() {
			rounding += d.rest()
			line.Rounding = plugins.KnownCost(d.rest())
			continue
		}
		if c.explainOnlyCost(d) || c.explainCachedInput(d) {
			continue
		}
		reason, explanation := Price, "the provider's price is not the catalogue's"
		switch {
		case d.unpriced > 0:
			reason, explanation = Unpriced, fmt.Sprintf("calls without a cost, because the catalogue has no price: %d", d.unpriced)
		case d.estimate > 0 && d.rest() < 0 && -d.rest() <= d.estimate+d.rounding:
			reason, explanation = Failed, "calls broke off before they stated a usage; their cost is an upper bound, and the provider bills less"
		case d.unknown:
			reason, explanation = Unknown, "the catalogue has no price for the other differences of the day"
		case d.model == searches:
			explanation = "more or fewer searches than recorded, or another price"
		case discount != 0:
			reason, explanation = Discount, fmt.Sprintf("all prices are %.4g %% lower than the catalogue's", discount*100)
		case d.expected > 0:
			part, direction := float64(d.rest())/float64(d.expected)*100, "higher"
			if part < 0 {
				part, direction = -part, "lower"
			}
			explanation = fmt.Sprintf("the provider's price is %.4g %% %s than the catalogue's", part, direction)
		}
		difference := Difference{
			Day: d.day, Model: d.model, Reason: reason, Explanation: explanation, Cost: plugins.KnownCost(d.rest()),
			Names: c.records.names[d.model],
		}
		if reason == Unpriced {
			difference.Condition = "cost=null"
		}
		c.report.Differences = append(c.report.Differences, difference)
	}
	c.report.Rounding = plugins.KnownCost(rounding)
}

// onlyDifference returns the difference of a model's tokens on a day whose cost is not stated, nil if there are
// none or several.
func (c *comparison) onlyDifference(d *dayCost) (only *Difference) {
	for i := range c.report.Differences {
		if other := &c.report.Differences[i]; other.Day == d.day && other.Model == d.model && !other.stated {
			if only != nil {
				return nil
			}
			only = other
		}
	}
	return only
}

// explainOnlyCost reports whether all that was billed of a model on a day is the cost of one difference, whose
// price the catalogue lacks. It then costs that.
func (c *comparison) explainOnlyCost(d *dayCost) bool {
	only := c.onlyDifference(d)
	if !d.unknown || d.expected != 0 || d.unpriced != 0 || only == nil {
		return false
	}
	only.Cost = plugins.KnownCost(d.rest())
	return true
}

// explainCachedInput reports whether the only difference of a model's tokens on a day may cost what remains
// of the day, because the bill does not say how much of its input came from a cache. It then costs that.
func (c *comparison) explainCachedInput(d *dayCost) bool {
	only := c.onlyDifference(d)
	if c.bill.States[CacheRead] || only == nil || !only.Cost.Valid {
		return false
	}
	g := group{d.day, series{model: d.model, tier: only.Tier}}
	lowest, highest := only.Cost.N, only.Cost.N
	for _, kind := range []Kind{CacheRead, CacheWrite} {
		tokens := Tokens{Output: only.Tokens.Output}
		tokens[kind] = only.Tokens.Input
		if cost := c.price(g, tokens); cost.Valid {
			lowest, highest = min(lowest, cost.N), max(highest, cost.N)
		}
	}
	cost := only.Cost.N + d.rest()
	if cost < lowest-d.rounding || cost > highest+d.rounding {
		return false
	}
	only.Cost.N = cost
	return true
}

// dayCosts adds up the costs, and the sums of the report.
func (c *comparison) dayCosts() []*dayCost {
	days := make(map[modelDay]*dayCost)
	at := func(day Day, model string) *dayCost {
		key := modelDay{day, model}
		if c.bill.CostsByDay {
			key.model = ""
		}
		if days[key] == nil {
			days[key] = &dayCost{modelDay: key}
		}
		return days[key]
	}
	var billed, recorded plugins.Nanodollars
	for _, cost := range c.bill.Costs {
		if !c.Window.contains(cost.Day) {
			continue
		}
		model := c.modelOf(cost.Model)
		if cost.Search {
			model = searches
		}
		d := at(cost.Day, model)
		d.billed += cost.Amount.Nanodollars
		d.rounding += cost.Amount.Rounding
		billed += cost.Amount.Nanodollars
	}
	for g, t := range c.recorded {
		if !c.Window.contains(g.day) || c.bill.WithoutCost[g.tier] {
			continue
		}
		recorded += t.Cost
		d := at(g.day, g.model)
		d.recorded += t.Cost - t.SearchCost
		d.expected += t.Cost - t.SearchCost
		d.unpriced += t.Unpriced
		d.estimate += t.EstimatedCost
		d.rounding += plugins.Nanodollars(t.Requests + 1) // each cost is rounded to a billionth
		if t.SearchCost != 0 {
			search := at(g.day, searches)
			search.recorded += t.SearchCost
			search.expected += t.SearchCost
		}
	}
	for key, cost := range c.costs {
		d := at(key.day, key.model)
		d.expected += cost
		d.unknown = d.unknown || c.unknown[key]
	}
	c.report.Billed.Cost, c.report.Recorded.Cost = plugins.KnownCost(billed), plugins.KnownCost(recorded)
	return slices.SortedFunc(maps.Values(days), func(a, b *dayCost) int {
		return cmp.Or(cmp.Compare(a.day, b.day), cmp.Compare(a.model, b.model))
	})
}

// discountOf is the part by which all costs of the bill are lower than expected, 0 if it is not
// the same part for all, or if there are too few to tell.
func discountOf(days []*dayCost) float64 {
	largest := slices.MaxFunc(append([]*dayCost{{}}, days...), func(a, b *dayCost) int { return cmp.Compare(a.expected, b.expected) })
	if largest.expected <= 0 {
		return 0
	}
	// Discounts are percentages with at most two decimals.
	part := math.Round((1-float64(largest.billed)/float64(largest.expected))*10000) / 10000
	agreeing := 0
	for _, d := range days {
		expected := float64(d.expected) * (1 - part)
		if math.Abs(float64(d.billed)-expected) > float64(d.rounding)+math.Abs(expected)*1e-9 {
			return 0
		}
		agreeing++
	}
	if part <= 0 || agreeing < 2 {
		return 0
	}
	return part
}
