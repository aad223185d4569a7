package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
)

// family is the source that overrides.txt names for a price that is unlike others, and right.
const family = "family"

// suspicion is what is unlikely about a price.
type suspicion struct {
	provider, model, tier, what string
}

// suspicions returns the prices that do not fit the other rates of the same model, its snapshots, or what
// other providers ask for it: mostly mistakes of a collection, such as a price for a thousand tokens.
func suspicions(c *catalog.Catalog) (all []suspicion) {
	for m := range c.Models() {
		for i, p := range m.Prices {
			if j := slices.IndexFunc(m.Prices[i+1:], func(q catalog.Price) bool {
				return q.From < p.From && q.Tier == p.Tier && q.Hours == p.Hours && q.InputAbove == p.InputAbove && q.Regional == p.Regional
			}); j >= 0 {
				all = append(all, suspicion{m.Provider, m.ID, p.Tier, fmt.Sprintf("the price from %s on is hidden by one from %s on, which follows", p.From, m.Prices[i+1+j].From)})
			}
			if p.From <= today && m.Provider != "echo" {
				add := func(format string, args ...any) {
					all = append(all, suspicion{m.Provider, m.ID, p.Tier, fmt.Sprintf(format, args...)})
				}
				compareRates(&p, add)
				if in := priceAt(m.Prices, p.Tier, max(p.InputAbove+1, 1)); in == nil || *in != p {
					continue // another one is in force
				}
				if standard := priceAt(m.Prices, "", max(p.InputAbove+1, 1)); p.Tier != "" && standard != nil && p.Hours == (catalog.Hours{}) && !p.Regional {
					compareTiers(&p, standard, add)
				}
				if short := priceAt(m.Prices, p.Tier, 1); p.InputAbove > 0 && short != nil && p.Input.Nano() > 0 && p.Input.Nano() < short.Input.Nano() {
					add("input above %d tokens is $%s, less than that of a short one, $%s", p.InputAbove, p.Input, short.Input)
				}
			}
		}
		all = append(all, compareSnapshot(c, m)...)
	}
	return append(all, compareHosts(c)...)
}

// checkFamilies prints the suspicions that no line of overrides.txt explains, and returns how many there are.
func checkFamilies(c *catalog.Catalog) (unexplained int) {
	for _, s := range suspicions(c) {
		if o := overrideOf(family, s.provider, s.model, s.tier); o != nil {
			o.used = true
			continue
		}
		unexplained++
		fmt.Printf("%s %s %s %s: %s\n", family, s.provider, s.model, cmp.Or(s.tier, "standard"), s.what)
	}
	return unexplained
}

// compareRates compares the rates of one price.
func compareRates(p *catalog.Price, add func(string, ...any)) {
	input := p.Input.Nano()
	for _, rule := range []struct {
		low, high          string
		maxRatio, minRatio plugins.Nanodollars // of high, in hundredths of low; 0 for none
	}{
		{"cache_read", "input", 0, 100},
		{"input", "cache_write", 200, 0}, // Google has the price of an hour of storage there
		{"cache_write", "cache_write_1h", 200, 100},
		{"input", "output", 2000, 100},
		{"input", "input_audio", 3200, 50},
		{"cache_read_audio", "input_audio", 0, 100},
		{"output", "reasoning", 200, 25},
		{"output", "output_audio", 1600, 100},
	} {
		low, high := p.Rate(rule.low), p.Rate(rule.high)
		if !low.Known() || !high.Known() || low.Nano() == 0 || high.Nano() == 0 || input == 0 {
			continue
		}
		if h := high.Nano() * 100; h < rule.minRatio*low.Nano() || rule.maxRatio > 0 && h > rule.maxRatio*low.Nano() {
			add("%s is $%s, and %s $%s", rule.low, low, rule.high, high)
		}
	}
}

// rounding is what vendors round prices to, in billionths of a dollar: half a cent.
const rounding = 5_000_000

// compareTiers compares the price of a tier with the standard one.
func compareTiers(p, standard *catalog.Price, add func(string, ...any)) {
	bounds := map[string][2]plugins.Nanodollars{"batch": {50, 50}, "flex": {25, 100}, "priority": {100, 400}, "fast": {100, 1000}, "ultrafast": {100, 1000}}
	bound, known := bounds[p.Tier]
	for _, name := range []string{"input", "output"} {
		rate, of := p.Rate(name).Nano()*100, standard.Rate(name).Nano()
		if known && rate > 0 && of > 0 && (rate < bound[0]*of-100*rounding || rate > bound[1]*of+100*rounding) {
			add("%s is $%s, and $%s in the standard tier", name, p.Rate(name), standard.Rate(name))
		}
	}
}

// dated is the end of the name of a snapshot.
var dated = regexp.MustCompile(`-(\d{8}|\d{4}-\d\d-\d\d)$`)

// compareSnapshot compares a snapshot with the name that it is a snapshot of.
func compareSnapshot(c *catalog.Catalog, m *catalog.Model) []suspicion {
	at := dated.FindStringIndex(m.ID)
	if at == nil {
		return nil
	}
	of, ok := c.Lookup(m.Provider, m.ID[:at[0]])
	p, q := priceAt(m.Prices, "", 1), (*catalog.Price)(nil)
	if ok {
		q = priceAt(of.Prices, "", 1)
	}
	if p == nil || q == nil || of == m || same(p, q) {
		return nil
	}
	return []suspicion{{m.Provider, m.ID, "", fmt.Sprintf("input and output are $%s and $%s, and $%s and $%s of %s", p.Input, p.Output, q.Input, q.Output, of.ID)}}
}

// compareHosts compares what providers ask for the same model.
func compareHosts(c *catalog.Catalog) (all []suspicion) {
	type offer struct {
		*catalog.Model
		price *catalog.Price
	}
	offers := make(map[string][]offer)
	for m := range c.Models() {
		ofHours := slices.ContainsFunc(m.Prices, func(p catalog.Price) bool { return p.Hours != (catalog.Hours{}) })
		if p := priceAt(m.Prices, "", 1); p != nil && p.Input.Nano() > 0 && !ofHours {
			name := strings.ToLower(m.ID[strings.LastIndexByte(m.ID, '/')+1:])
			offers[name] = append(offers[name], offer{m, p})
		}
	}
	const dearer, cheaper = 5, 10 // providers subsidise models more than they overcharge for them
	for _, list := range offers {
		if len(list) < 3 {
			continue
		}
		for _, name := range []string{"input", "output"} {
			rate := func(o offer) plugins.Nanodollars { return o.price.Rate(name).Nano() }
			slices.SortFunc(list, func(a, b offer) int { return cmp.Compare(rate(a), rate(b)) })
			median := rate(list[len(list)/2])
			for _, o := range list {
				if r := rate(o); r > dearer*median || r*cheaper < median && r > 0 {
					all = append(all, suspicion{o.Provider, o.ID, "", fmt.Sprintf("%s is $%s, and the median of %d providers is $%s", name, o.price.Rate(name), len(list), list[len(list)/2].price.Rate(name))})
				}
			}
		}
	}
	return all
}
