package main

import (
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins/catalog"
)

// quote is what one source says that a model costs.
type quote struct {
	source string
	date   string // the day the source was published
	prices []catalog.Price
}

// priceAt is the price that holds for so much input on a day, at any hour of it.
// Nil if there is none.
func priceAt(prices []catalog.Price, tier string, input int64, on catalog.Date) *catalog.Price {
	for i := len(prices) - 1; i >= 0; i-- {
		if p := &prices[i]; p.Hours == (catalog.Hours{}) && holds(p, tier, input, on) {
			return p
		}
	}
	return nil
}

func holds(p *catalog.Price, tier string, input int64, on catalog.Date) bool {
	return p.Tier == tier && !p.Regional && p.From <= on && (p.InputAbove == 0 || input > p.InputAbove)
}

// agree reports whether two lists of prices agree about a tier, for any
// size of input. A source that knows no hours agrees with the price of any of them.
func agree(a, b []catalog.Price, tier string, on catalog.Date) bool {
	return within(a, b, tier, on) || within(b, a, tier, on)
}

func within(all, some []catalog.Price, tier string, on catalog.Date) bool {
	for _, size := range sizes(all, some) {
		p := priceAt(some, tier, size, on)
		if p == nil {
			return priceAt(all, tier, size, on) == nil
		}
		if q := priceAt(all, tier, size, on); q == nil || !same(p, q) && !slices.ContainsFunc(all, func(q catalog.Price) bool {
			return q.Hours != (catalog.Hours{}) && holds(&q, tier, size, on) && same(p, &q)
		}) {
			return false
		}
	}
	return true
}

// same reports whether two prices mean the same, but for how they are rounded. Only
// the main rates have to be: the others are missing from one source or the other,
// as are that of output where models give none, and those of audio and the like
// beside those of tokens.
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

// sizes are those of inputs that may have different prices. Sources write a bound
// of 128k tokens as 128,000 or 131,072, so that what is near a bound is left out.
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

// decide returns the prices of a model, given the quotes of the sources. The price
// that two sources agree on counts, else the price of the source that was published
// last. The prices of a service tier are taken from those that agree on the
// standard ones. If sources agree, the first one's prices are taken, and the others
// add the rates that it lacks.
func decide(quotes []quote, on catalog.Date) []catalog.Price {
	quotes = slices.DeleteFunc(quotes, func(q quote) bool { return len(q.prices) == 0 })
	if len(quotes) == 0 {
		return nil
	}
	standard := majority(quotes, "", on)
	prices := combine(standard, "", on)
	var tiers []string
	for _, q := range standard {
		for _, p := range q.prices {
			tiers = append(tiers, p.Tier)
		}
	}
	slices.Sort(tiers)
	tiers = slices.DeleteFunc(slices.Compact(tiers), func(tier string) bool { return tier == "" })
	for _, tier := range tiers {
		of := slices.DeleteFunc(slices.Clone(standard), func(q quote) bool {
			return !slices.ContainsFunc(q.prices, func(p catalog.Price) bool { return p.Tier == tier })
		})
		prices = append(prices, combine(majority(of, tier, on), tier, on)...)
	}
	withoutGuesses(prices, on)
	for _, tier := range tiers {
		prices = append(prices, unknownAbove(prices, tier, on)...)
	}
	return prices
}

// majority is the sources that agree with most others, else the one published last.
func majority(quotes []quote, tier string, on catalog.Date) (best []quote) {
	newest := ""
	for _, q := range quotes {
		var with []quote
		for _, other := range quotes {
			if agree(q.prices, other.prices, tier, on) {
				with = append(with, other)
			}
		}
		if len(with) > len(best) || len(with) == len(best) && q.date > newest {
			best, newest = with, q.date
		}
	}
	return best
}

// combine is the prices of a tier that the first source has, with what the others
// add to those that hold today at any hour.
func combine(quotes []quote, tier string, on catalog.Date) []catalog.Price {
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
			if o := priceAt(other.prices, tier, size, on); o != nil && priceAt(prices, tier, size, on) == p && add(p, o) {
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

// withoutGuesses makes rates unknown that the prices of tiers and of long inputs
// lack and the standard price has: what they are for, such as cached tokens or
// images, would be charged as the rest.
func withoutGuesses(prices []catalog.Price, on catalog.Date) {
	standard := priceAt(prices, "", 1, on)
	if standard == nil {
		return
	}
	for i := range prices {
		p := &prices[i]
		if p.Tier == "" && p.InputAbove == 0 || p.From > on {
			continue
		}
		for _, name := range partRates {
			if r := p.Rate(name); standard.Rate(name).Known() && !r.Known() {
				*r = catalog.UnknownRate
			}
		}
	}
}

// unknownAbove returns prices without rates for the long inputs whose price in a
// tier no source gives, though their standard price differs from the price of short
// inputs.
func unknownAbove(prices []catalog.Price, tier string, on catalog.Date) (unknown []catalog.Price) {
	for _, p := range prices {
		if p.Tier != "" || p.InputAbove == 0 || priceAt(prices, "", p.InputAbove+1, on).InputAbove != p.InputAbove {
			continue
		}
		short, long := priceAt(prices, tier, p.InputAbove, on), priceAt(prices, tier, p.InputAbove+p.InputAbove/20+1, on)
		if short != nil && same(short, long) && !same(priceAt(prices, "", p.InputAbove, on), &p) {
			unknown = append(unknown, catalog.Price{Tier: tier, InputAbove: p.InputAbove, Source: short.Source})
		}
	}
	return unknown
}
