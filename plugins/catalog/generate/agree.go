package main

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins/catalog"
)

// quote is what one source says that a model costs.
type quote struct {
	source string
	prices []catalog.Price
}

// priceAt returns the price that holds today, at any hour, for an input of that many tokens, or nil.
func priceAt(prices []catalog.Price, tier string, input int64) *catalog.Price {
	for i := len(prices) - 1; i >= 0; i-- {
		if p := &prices[i]; p.Hours == (catalog.Hours{}) && holds(p, tier, input) {
			return p
		}
	}
	return nil
}

func holds(p *catalog.Price, tier string, input int64) bool {
	return p.Tier == tier && !p.Regional && p.From <= today && (p.InputAbove == 0 || input > p.InputAbove)
}

// agree reports whether two lists of prices agree about a tier, for any
// size of input. A source that knows no hours agrees with the price of any of them.
func agree(a, b []catalog.Price, tier string) bool {
	return within(a, b, tier) || within(b, a, tier)
}

func within(all, some []catalog.Price, tier string) bool {
	for _, size := range sizes(all, some) {
		p := priceAt(some, tier, size)
		if p == nil {
			return priceAt(all, tier, size) == nil
		}
		if q := priceAt(all, tier, size); q == nil || !same(p, q) && !slices.ContainsFunc(all, func(q catalog.Price) bool {
			return q.Hours != (catalog.Hours{}) && holds(&q, tier, size) && same(p, &q)
		}) {
			return false
		}
	}
	return true
}

// same reports whether two prices are equal but for rounding. Only the main rates count, because one source or
// the other lacks the rest: the rate of output if a model gives none, and those of audio and the like beside those
// of tokens.
func same(p, q *catalog.Price) bool {
	if !alike(p.Input, q.Input) || p.Output.Nano() != 0 && q.Output.Nano() != 0 && !alike(p.Output, q.Output) {
		return false
	}
	return p.Input.Nano() != 0 || alike(p.SearchUnit, q.SearchUnit) && alike(p.Image, q.Image) &&
		alike(p.Page, q.Page) && alike(p.AudioHour, q.AudioHour)
}

func alike(a, b catalog.Rate) bool {
	x, y := a.Nano(), b.Nano()
	return max(x-y, y-x)*200 <= max(x, y)
}

// sizes are inputs that may have different prices. A bound of 128k tokens is 128,000 in some sources and 131,072
// in others: inputs near a bound are left out.
func sizes(lists ...[]catalog.Price) []int64 {
	all := []int64{1}
	for _, prices := range lists {
		for _, p := range prices {
			all = append(all, p.InputAbove+p.InputAbove/20+1)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// decide returns the prices of a model, given the quotes of the sources: in each tier those
// of the first source that has some. The sources that agree with it on the standard price
// add tiers, and in each tier those that agree with it add the rates that it lacks.
func decide(quotes []quote) (prices []catalog.Price) {
	for _, q := range quotes {
		withoutFreeReads(q.prices)
	}
	standard := sourcesInAgreement(quotes, "")
	var tiers []string
	for _, q := range standard {
		tiers = append(tiers, q.tiers()...)
	}
	slices.Sort(tiers)
	tiers = slices.Compact(tiers) // the standard one is the first
	for _, tier := range tiers {
		prices = append(prices, combine(sourcesInAgreement(standard, tier), tier)...)
	}
	withoutGuesses(prices)
	for _, tier := range tiers {
		prices = append(prices, unknownAbove(prices, tier)...)
	}
	return prices
}

func (q quote) tiers() (tiers []string) {
	for _, p := range q.prices {
		tiers = append(tiers, p.Tier)
	}
	slices.Sort(tiers)
	return slices.Compact(tiers)
}

// sourcesInAgreement returns the sources with a price in the tier that agree with the first of them.
func sourcesInAgreement(quotes []quote, tier string) (agreed []quote) {
	for _, q := range quotes {
		if slices.Contains(q.tiers(), tier) && (agreed == nil || agree(agreed[0].prices, q.prices, tier)) {
			agreed = append(agreed, q)
		}
	}
	return agreed
}

// combine is the first source's prices of a tier. The others add rates to the prices that hold today at any hour.
func combine(quotes []quote, tier string) []catalog.Price {
	first := quotes[0]
	var prices []catalog.Price
	for _, p := range first.prices {
		if p.Tier == tier {
			p.Source = first.source
			prices = append(prices, p)
		}
	}
	if slices.ContainsFunc(prices, func(p catalog.Price) bool { return p.Hours != (catalog.Hours{}) }) {
		return prices
	}
	for _, other := range quotes[1:] {
		for i := range prices {
			p := &prices[i]
			size := p.InputAbove + p.InputAbove/20 + 1
			if o := priceAt(other.prices, tier, size); o != nil && priceAt(prices, tier, size) == p && add(p, o) {
				p.Source = strings.Join([]string{p.Source, other.source}, ", ")
			}
		}
	}
	return prices
}

// partRates are the rates of parts of the input and output, which are charged as the
// whole without one.
var partRates = []string{"cache_read", "cache_write", "input_audio", "input_image", "reasoning", "output_audio", "output_image"}

// add gives p the rates of parts that only o has.
func add(p, o *catalog.Price) (added bool) {
	for _, name := range append([]string{"cache_write_1h", "cache_read_audio", "web_search"}, partRates...) {
		if to, from := p.Rate(name), o.Rate(name); !to.Known() && from.Known() {
			*to, added = *from, true
		}
	}
	return added
}

// withoutFreeReads takes out the rates of 0 for cached tokens of models whose other input
// costs something. By them a source says that the vendor has no other rate for what is
// cached, as of gpt-3.5-turbo: https://openai.com/api/pricing
func withoutFreeReads(prices []catalog.Price) {
	for i := range prices {
		if p := &prices[i]; p.Input.Nano() > 0 && p.CacheRead.Known() && p.CacheRead.Nano() == 0 {
			p.CacheRead = catalog.Rate{}
		}
	}
}

// withoutGuesses makes rates unknown that a standard price has, and a price of a tier or of long inputs lacks.
// Else the parts, such as cached tokens or images, would be charged as the rest.
func withoutGuesses(prices []catalog.Price) {
	standard := priceAt(prices, "", 1)
	if standard == nil {
		return
	}
	for i := range prices {
		p := &prices[i]
		if p.Tier == "" && p.InputAbove == 0 || p.From > today {
			continue
		}
		for _, name := range partRates {
			if r := p.Rate(name); standard.Rate(name).Known() && !r.Known() {
				*r = catalog.UnknownRate
			}
		}
	}
}

// unknownAbove returns prices without rates for long inputs whose price in a tier no source gives, if long inputs
// have another price in the standard tier.
func unknownAbove(prices []catalog.Price, tier string) (unknown []catalog.Price) {
	for _, p := range prices {
		if p.Tier != "" || p.InputAbove == 0 || priceAt(prices, "", p.InputAbove+1).InputAbove != p.InputAbove {
			continue
		}
		short, long := priceAt(prices, tier, p.InputAbove), priceAt(prices, tier, p.InputAbove+p.InputAbove/20+1)
		if short != nil && same(short, long) && !same(priceAt(prices, "", p.InputAbove), &p) {
			unknown = append(unknown, unknownPrice(tier, p.InputAbove, short.Source))
		}
	}
	return unknown
}

func unknownPrice(tier string, above int64, source string) catalog.Price {
	return catalog.Price{Tier: tier, InputAbove: above, Source: source}
}
