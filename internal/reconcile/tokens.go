package reconcile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// shift is a way in which a bill may assign calls to days.
type shift struct {
	// byEnd counts a call on the day on which its answer ended.
	byEnd bool
	// zone is the time zone, in hours east of UTC.
	zone hours
	// sunday is the day on which the clocks are put forward or back, and after the zone from then on. 0 is
	// a day without a change.
	sunday Day
	after  hours
}

// zoneAt returns the time zone at an hour. Clocks are changed at night, when both zones have the same day.
func (s shift) zoneAt(hour hours) hours {
	if noon := hours(s.sunday)*24 + 12 - s.zone; s.sunday != 0 && hour >= noon {
		return s.after
	}
	return s.zone
}

// isSunday reports whether clocks may be changed on a day.
func (d Day) isSunday() bool { return d.Time().Weekday() == time.Sunday }

// byDay returns the totals of each day, with calls assigned to days by s.
func (r *Records) byDay(s shift) map[group]*Totals {
	days := make(map[group]*Totals)
	for series, spans := range r.totals {
		for at, totals := range spans {
			hour := at.start
			if s.byEnd {
				hour = at.end
			}
			g := group{dayOfHour(hour + s.zoneAt(hour)), series}
			if days[g] == nil {
				days[g] = new(Totals)
			}
			days[g].add(totals)
		}
	}
	return days
}

// compareTokens explains the differences between the tokens of the bill and those of the records.
func (c *comparison) compareTokens() {
	var sum Totals
	for g, t := range c.recorded {
		if c.Window.contains(g.day) {
			if !c.withoutTokens[g.model] {
				sum.Tokens = sum.Tokens.plus(t.Tokens)
				sum.Requests += t.Requests
				line := c.line(modelDay{g.day, g.model})
				line.Recorded.Requests.N += t.Requests
				line.Recorded.Tokens = line.Recorded.Tokens.plus(countsOf(t.Tokens))
			}
		}
	}
	c.report.Recorded = Sum{Requests: plugins.Known(sum.Requests), Tokens: countsOf(sum.Tokens)}

	c.rest = c.difference(c.recorded)
	c.explainShift()
	c.explainDuplicates()
	c.explainTiers()
	c.explainTiming()
	c.explainKeys()
	for _, g := range c.groups() {
		c.explainCache(g)
		c.explainRest(g)
	}
	c.listOtherKeys()
}

// explainShift finds whether the bill assigns calls to the day of their end, or to days of another time
// zone. A shift must explain several days: one may be chance.
func (c *comparison) explainShift() {
	best, fewest := shift{}, c.countInWindow(c.rest)
	consider := func(s shift, gain int) {
		if n := c.countInWindow(c.difference(c.records.byDay(s))); n <= c.countInWindow(c.rest)-gain && n < fewest {
			best, fewest = s, n
		}
	}
	consider(shift{byEnd: true}, 2)
	for zone := hours(1); zone <= 14; zone++ {
		consider(shift{zone: -zone}, 3)
		consider(shift{zone: zone}, 3)
	}
	if zone := best.zone; !best.byEnd {
		for day := c.Window.From; day < c.Window.To; day++ {
			for _, other := range []hours{zone - 1, zone + 1} {
				if day.isSunday() {
					consider(shift{zone: zone, sunday: day, after: other}, 3)
					consider(shift{zone: other, sunday: day, after: zone}, 3)
				}
			}
		}
	}
	if best == (shift{}) {
		return
	}
	shifted := c.records.byDay(best)
	for _, g := range c.groups() {
		before, after := orEmpty(c.recorded[g]), orEmpty(shifted[g])
		part := count{after.Requests - before.Requests, after.Tokens.plus(before.Tokens.negated())}
		if !c.bill.CountsRequests {
			part.requests = 0
		}
		if part == (count{}) {
			continue
		}
		reason, explanation := Timing, "the bill has calls on the day on which their answers end; records, on the day on which calls begin"
		if !best.byEnd {
			reason, explanation = TimeZone, fmt.Sprintf("the days of the bill are those of UTC%+d", best.zone)
			if best.sunday != 0 {
				explanation += fmt.Sprintf(", and from %s on of UTC%+d", best.sunday, best.after)
			}
		}
		c.explain(g, part, reason, explanation, func(d *Difference) { d.Cost = plugins.KnownCost(after.Cost - before.Cost) })
	}
}

func (c *comparison) countInWindow(groups map[group]count) (n int) {
	for g := range groups {
		if c.Window.contains(g.day) {
			n++
		}
	}
	return n
}

func orEmpty(t *Totals) *Totals {
	if t == nil {
		return new(Totals)
	}
	return t
}

// explainDuplicates explains calls that were recorded more than once. A provider gives no two
// responses the same id.
func (c *comparison) explainDuplicates() {
	for _, g := range c.groups() {
		repeated := orEmpty(c.recorded[g]).Repeated
		if repeated.Requests == 0 || c.rest[g].tokens.Total() >= 0 {
			continue
		}
		part := count{-repeated.Requests, repeated.Tokens.negated()}
		if !c.bill.CountsRequests {
			part.requests = 0
		}
		c.explain(g, part, Duplicate, fmt.Sprintf("recorded more than once, with the same response_id: %d", repeated.Requests), func(d *Difference) {
			d.Cost = plugins.KnownCost(-repeated.Cost)
		})
	}
}

// explainTiers explains usage that is billed in another tier of the same model and day.
func (c *comparison) explainTiers() {
	for _, g := range c.groups() {
		for _, other := range c.groups() {
			rest := c.rest[g]
			if rest == (count{}) || other.day != g.day || other.model != g.model || other.account != g.account || other.tier == g.tier || c.rest[other] != rest.negated() {
				continue
			}
			billed, recorded := g, other
			if rest.tokens.Total() < 0 {
				billed, recorded = other, g
			}
			explanation := fmt.Sprintf("billed in the service tier %s, recorded in %s", tierText(billed.tier), tierText(recorded.tier))
			c.explain(g, rest, Tier, explanation, nil)
			c.explain(other, rest.negated(), Tier, explanation, nil)
		}
	}
}

func tierText(tier string) string {
	if tier == "" {
		return "standard"
	}
	return tier
}

// explainTiming explains usage that is billed up to two days before or after its record.
func (c *comparison) explainTiming() {
	for _, g := range c.groups() {
		for _, days := range []Day{1, -1, 2, -2} {
			rest, other := c.rest[g], group{g.day + days, g.series}
			if rest == (count{}) || c.rest[other] != rest.negated() {
				continue
			}
			billed, recorded := g.day, other.day
			if rest.tokens.Total() < 0 {
				billed, recorded = other.day, g.day
			}
			explanation := fmt.Sprintf("recorded on %s, billed on %s", recorded, billed)
			c.explain(g, rest, Timing, explanation, nil)
			c.explain(other, rest.negated(), Timing, explanation, nil)
		}
	}
}

// explainKeys explains the usage of a key without recorded calls: on each day, the difference equals
// the key's usage.
func (c *comparison) explainKeys() {
	if len(c.Keys) > 0 {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(c.byKey)) {
		usage := c.byKey[key]
		if key == "" || len(c.byKey) == 1 || !c.isRest(usage) {
			continue
		}
		for g, n := range usage {
			if !c.bill.CountsRequests {
				n.requests = 0
			}
			c.explainOutside(g, n, key, "no call at this key is recorded")
		}
	}
}

// isRest reports whether the usage of a key equals the differences of its groups.
func (c *comparison) isRest(usage map[group]count) bool {
	for g, n := range usage {
		if !c.bill.CountsRequests {
			n.requests = 0
		}
		if n != c.rest[g] {
			return false
		}
	}
	return true
}

func (c *comparison) explainOutside(g group, n count, key, explanation string) {
	c.explain(g, n, Outside, explanation, func(d *Difference) { d.Key = key })
}

// explainCache explains input that is billed as another kind of cache use.
func (c *comparison) explainCache(g group) {
	part := c.rest[g].tokens
	part[Output] = 0
	if part.Total() != 0 || part == (Tokens{}) {
		return
	}
	explanation := "the same input is billed as another kind of cache use"
	if part[CacheWrite1h] > 0 && part[CacheWrite] == -part[CacheWrite1h] {
		explanation = "writes to the cache for an hour, recorded as writes for five minutes"
	}
	c.explain(g, count{tokens: part}, Cache, explanation, nil)
}

// explainRest explains the remaining difference of a group.
func (c *comparison) explainRest(g group) {
	without := c.withoutUsage(g)
	c.explainStated(g, &without)
	rest, recorded := c.rest[g], orEmpty(c.recorded[g])
	if rest == (count{}) {
		return
	}
	more := rest.tokens.least() >= 0 && rest.requests >= 0
	onlyOutput := rest == count{tokens: Tokens{Output: rest.tokens[Output]}}
	lost := c.lostOn(g.day)
	switch {
	case onlyOutput && rest.tokens[Output] > 0 && recorded.Requests > 0 && without.WithoutUsage == 0 && recorded.Reasoning >= rest.tokens[Output]:
		c.explain(g, rest, Reasoning, "the same input and more output: reasoning that the answers do not count as output", nil)
	case more && without.WithoutUsage > 0 && rest.requests <= without.WithoutUsage:
		reason, explanation := NoUsage, fmt.Sprintf("the answers of some calls state no usage, and the provider bills for them; of those, the day has %d", without.WithoutUsage)
		if without.Broken > 0 {
			reason, explanation = Failed, fmt.Sprintf("the provider bills calls that failed or broke off before they stated a usage; of those, the day has %d", without.Broken)
		}
		c.explain(g, rest, reason, explanation, func(d *Difference) {
			if d.Cost.Valid {
				d.Cost.N -= without.EstimatedCost
			}
			d.Condition = "in=null"
		})
	case more && lost > 0 && rest.requests <= lost:
		c.explain(g, rest, Lost, fmt.Sprintf("Weir lost records of this day: %d", lost), nil)
	case more && onlyOutput:
		c.explain(g, rest, Unknown, "the same input and more output than the answers state", nil)
	case more && c.bill.OwnNames && c.records.names[g.model] == nil:
		c.explainOutside(g, rest, "", "no record has a model of this name: others called it, or records have another name for it, which --model or the bill's option model says")
	case more && c.Losses == nil:
		c.explainOutside(g, rest, "", "no record: at a key that others use, not through Weir, or lost, which the admin endpoint knows")
	case more:
		c.explainOutside(g, rest, "", "no record: at a key that others use, or not through Weir")
	case rest.negated().tokens.least() >= 0:
		c.explain(g, rest, Unbilled, "recorded, and not on the bill: at another organisation of the provider, not billed yet, or recorded twice without a response_id", nil)
	default:
		c.explain(g, rest, Unknown, "some kinds of tokens are more, and some are less", nil)
	}
}

// explainStated explains what the provider states of calls that have no usage in their records, and
// removes from without what it has answered for.
func (c *comparison) explainStated(g group, without *Totals) {
	part := without.Stated
	left := c.rest[g].plus(part.negated())
	if part.tokens != (Tokens{}) && left.tokens.least() >= 0 && left.requests >= 0 {
		reason := NoUsage
		if without.Broken > 0 {
			reason = Failed
		}
		explanation := fmt.Sprintf("the provider billed %d of %d calls whose answers state no usage, and states it for each", part.requests, without.WithoutUsage)
		c.explain(g, part, reason, explanation, func(d *Difference) {
			d.Cost = plugins.KnownCost(without.StatedCost - without.EstimatedCost)
			d.Condition, d.stated = "in=null", true
		})
		without.EstimatedCost = 0
	}
	without.WithoutUsage -= without.Asked
	without.Broken = min(without.Broken, without.WithoutUsage)
}

// withoutUsage adds up the calls of a model on a day that may be billed and state no usage. Such
// calls have no tier, and the model of the request, which may be the name without a date.
func (c *comparison) withoutUsage(g group) (sum Totals) {
	for other, t := range c.recorded {
		if other.day != g.day || other.account != g.account {
			continue
		}
		if other.model == g.model {
			sum.EstimatedCost += t.EstimatedCost
		} else if !strings.HasPrefix(g.model, other.model+"-") {
			continue
		}
		sum.WithoutUsage += t.WithoutUsage
		sum.Broken += t.Broken
		sum.Stated, sum.StatedCost, sum.Asked = sum.Stated.plus(t.Stated), sum.StatedCost+t.StatedCost, sum.Asked+t.Asked
	}
	return sum
}

// lostOn returns the number of calls that Weir lost on a day.
func (c *comparison) lostOn(day Day) (calls int64) {
	for _, l := range c.Losses {
		if DayOf(l.From) <= day && day <= DayOf(l.To) {
			calls += l.Calls
		}
	}
	return calls
}

// listOtherKeys adds a difference for each usage of a key that is not Weir's.
func (c *comparison) listOtherKeys() {
	if len(c.Keys) == 0 {
		return
	}
	for _, u := range c.bill.Usage {
		if _, known := c.accountOf(u); known || c.withoutTokens[c.modelOf(u.Model)] {
			continue
		}
		g := group{u.Day, series{model: c.modelOf(u.Model), tier: catalog.TierName(u.Tier)}}
		c.add(Difference{
			Day: g.day, Model: g.model, Tier: g.tier, Key: u.Key, Reason: Outside, Explanation: "the key is none of those that Weir uses",
			Requests: c.requests(u.Requests), Tokens: countsOf(u.Tokens), Cost: c.price(g, u.Tokens),
			Names: c.records.names[g.model],
		})
	}
}
