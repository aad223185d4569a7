package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins/catalog"
)

// genai is the data of genai-prices by its ids of providers.
type genai struct {
	rules    map[string][]*rule
	fallback map[string][]string // the providers whose models and prices one resells
}

// rule is a model of genai-prices: it says which names have which prices.
type rule struct {
	genaiModel
	match  catalog.Match
	prices []catalog.Price
}

// The shape of genai-prices' data.
type genaiProvider struct {
	ID       string       `json:"id"`
	Models   []genaiModel `json:"models"`
	Fallback []string     `json:"fallback_model_providers"`
}

type genaiModel struct {
	ID      string      `json:"id"`
	Name    string      `json:"name"`
	Match   genaiMatch  `json:"match"`
	Context int64       `json:"context_window"`
	Prices  genaiPrices `json:"prices"`
	// Variants are rates that replace those of the same unit in some contexts.
	Variants []struct {
		When map[string]string `json:"when"`
		genaiPrice
	} `json:"price_variants"`
}

type genaiMatch struct {
	Equals     string       `json:"equals"`
	StartsWith string       `json:"starts_with"`
	EndsWith   string       `json:"ends_with"`
	Contains   string       `json:"contains"`
	Regex      string       `json:"regex"`
	Or         []genaiMatch `json:"or"`
	And        []genaiMatch `json:"and"`
}

// genaiPrices is one set of rates, or a list of which the last one whose
// constraint holds counts.
type genaiPrices []genaiPrice

type genaiPrice struct {
	Constraint *struct {
		StartDate string `json:"start_date"`
		StartTime string `json:"start_time"`
		EndTime   string `json:"end_time"`
	} `json:"constraint"`
	Prices map[string]genaiRate `json:"prices"`
}

// genaiRate is a number, or one with tiers: crossing a tier's start, in tokens
// of the whole input, changes the rate of all tokens.
type genaiRate struct {
	Base  json.Number `json:"base"`
	Tiers []struct {
		Start int64       `json:"start"`
		Price json.Number `json:"price"`
	} `json:"tiers"`
}

func parseGenai(text []byte) (*genai, error) {
	var providers []genaiProvider
	if err := json.Unmarshal(text, &providers); err != nil {
		return nil, err
	}
	g := &genai{make(map[string][]*rule), make(map[string][]string)}
	for _, p := range providers {
		g.fallback[p.ID] = p.Fallback
		for _, m := range p.Models {
			r := &rule{genaiModel: m}
			var err error
			if r.match, err = m.Match.match(); err != nil {
				return nil, fmt.Errorf("%s: %w", m.ID, err)
			}
			if r.prices, err = m.prices(); err != nil {
				return nil, fmt.Errorf("%s: %w", m.ID, err)
			}
			g.rules[p.ID] = append(g.rules[p.ID], r)
		}
	}
	return g, nil
}

// find is the first rule that holds for a name, of the provider or else of those
// that it resells. Nil if there is none.
func (g *genai) find(provider, name string) *rule {
	for _, id := range append([]string{provider}, g.fallback[provider]...) {
		rules := g.rules[id]
		if i := slices.IndexFunc(rules, func(r *rule) bool { return r.match.Matches(name) }); i >= 0 {
			return rules[i]
		}
	}
	return nil
}

func (p *genaiPrices) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]genaiPrice)(p))
	}
	*p = make(genaiPrices, 1)
	return json.Unmarshal(b, &(*p)[0].Prices)
}

func (r *genaiRate) UnmarshalJSON(b []byte) error {
	if b[0] == '{' {
		type plain genaiRate
		return json.Unmarshal(b, (*plain)(r))
	}
	return json.Unmarshal(b, &r.Base)
}

// at is the rate of a call with just over so much input.
func (r genaiRate) at(input int64) json.Number {
	n := r.Base
	for _, t := range r.Tiers {
		if input >= t.Start {
			n = t.Price
		}
	}
	return n
}

// errUncounted marks a price in units that a usage doesn't count.
var errUncounted = errors.New("charges for what usages don't count")

// prices are the model's prices, none where they charge for what usages don't
// count: such a model's cost is unknown. An empty set of rates is 0.
func (m genaiModel) prices() ([]catalog.Price, error) {
	var prices []catalog.Price
	var from catalog.Date
	base := m.Prices[0].Prices
	for _, g := range m.Prices {
		if err := g.add(&prices, &from, ""); err != nil {
			return uncounted(err)
		}
		if (g.Constraint == nil || g.Constraint.StartDate != "") && from <= today() {
			base = g.Prices
		}
	}
	for _, v := range m.Variants {
		tier := v.When["service_tier"] + v.When["processing"] + v.When["speed"]
		if len(v.When) != 1 || tier == "" || tier == "default" {
			continue // depends on what no usage reports, or is no tier
		}
		v.Prices = maps.Clone(v.Prices)
		for unit, r := range base {
			if _, ok := v.Prices[unit]; !ok {
				v.Prices[unit] = r
			}
		}
		from = 0
		if err := v.add(&prices, &from, tier); err != nil {
			return uncounted(err)
		}
	}
	return prices, nil
}

func uncounted(err error) ([]catalog.Price, error) {
	if errors.Is(err, errUncounted) {
		return nil, nil
	}
	return nil, err
}

// add appends the prices of one set of rates. A constraint can't hold both a date
// and hours, so that the hours that follow a date are those from that date on.
func (g genaiPrice) add(prices *[]catalog.Price, from *catalog.Date, tier string) error {
	when := catalog.Price{Tier: tier}
	if c := g.Constraint; c != nil {
		var err error
		if c.StartDate != "" {
			*from, err = catalog.ParseDate(c.StartDate)
		} else {
			when.Hours, err = catalog.ParseHours(clock(c.StartTime) + "-" + clock(c.EndTime))
		}
		if err != nil {
			return err
		}
	}
	when.From = *from
	for _, start := range g.tiers() {
		p := when
		p.InputAbove = start
		if err := setGenaiRates(&p, g.Prices, start); err != nil {
			return err
		}
		*prices = append(*prices, p)
	}
	return nil
}

// clock is a time of day in UTC, such as "16:30:00Z" or "16:30:00+00:00", without
// its seconds.
func clock(s string) string {
	s = strings.TrimSuffix(strings.TrimSuffix(s, "Z"), "+00:00")
	return strings.TrimSuffix(s, ":00")
}

// tiers are the sizes of input at which some rate changes, with 0 for the base.
func (g genaiPrice) tiers() []int64 {
	starts := []int64{0}
	for _, r := range g.Prices {
		for _, t := range r.Tiers {
			starts = append(starts, t.Start)
		}
	}
	slices.Sort(starts)
	return slices.Compact(starts)
}

// genaiUnits are the units of genai-prices: the names that the catalogue has for
// their rates, and how many of the unit a price is for.
var genaiUnits = map[string]struct {
	rate string
	per  int64
}{
	"input_mtok":            {"input", 1},
	"output_mtok":           {"output", 1},
	"cache_read_mtok":       {"cache_read", 1},
	"cache_write_mtok":      {"cache_write", 1},
	"cache_write_1h_mtok":   {"cache_write_1h", 1},
	"input_audio_mtok":      {"input_audio", 1},
	"cache_audio_read_mtok": {"cache_read_audio", 1},
	"input_image_mtok":      {"input_image", 1},
	"output_audio_mtok":     {"output_audio", 1},
	"output_image_mtok":     {"output_image", 1},
	"output_reasoning_mtok": {"reasoning", 1},
	"requests_kcount":       {"request", 1000},
	"web_searches_kcount":   {"web_search", 1000},
	"audio_hours":           {"audio_hour", 1},
	"input_audio_hours":     {"audio_hour", 1}, // the same price
	"input_document_kpages": {"page", 1000},
}

func setGenaiRates(p *catalog.Price, rates map[string]genaiRate, input int64) error {
	if len(rates) == 0 {
		zero, err := rate("0", big.NewRat(1, 1))
		p.Input, p.Output = zero, zero
		return err
	}
	for _, unit := range slices.Sorted(maps.Keys(rates)) {
		switch unit {
		case "storage_searches_kcount", "cache_image_read_mtok", "input_video_mtok", "input_annotated_document_kpages":
			continue // optional extras that usages don't count
		case "input_mchars", "input_text_messages_kcount", "output_citation_mtok", "output_video_mtok":
			return errUncounted
		}
		known, ok := genaiUnits[unit]
		if !ok {
			return fmt.Errorf("unknown unit %q of price", unit)
		}
		var err error
		if *p.Rate(known.rate), err = rate(rates[unit].at(input), big.NewRat(1, known.per)); err != nil {
			return err
		}
	}
	return nil
}

// rate is the price of a unit of the catalogue, which is dollars times factor.
func rate(dollars json.Number, factor *big.Rat) (catalog.Rate, error) {
	n, ok := new(big.Rat).SetString(string(dollars))
	if !ok {
		return catalog.Rate{}, fmt.Errorf("%q is not a number", dollars)
	}
	return catalog.ParseRate(n.Mul(n, factor).FloatString(9))
}

// lookahead is a regular expression that says only what a name must not hold,
// which RE2 has no syntax for.
var lookahead = regexp.MustCompile(`^\^\(\?!(.*)\)$`)

func (g genaiMatch) match() (m catalog.Match, err error) {
	m = catalog.Match{Equals: g.Equals, StartsWith: g.StartsWith, EndsWith: g.EndsWith, Contains: g.Contains}
	if g.Regex != "" {
		if not := lookahead.FindStringSubmatch(g.Regex); not != nil {
			m.Not = new(catalog.Match)
			m.Not.Regex, err = regexp.Compile("^" + not[1])
		} else {
			m.Regex, err = regexp.Compile(g.Regex)
		}
	}
	if err == nil {
		m.Or, err = matches(g.Or)
	}
	if err == nil {
		m.And, err = matches(g.And)
	}
	return m, err
}

func matches(rules []genaiMatch) (ms []catalog.Match, err error) {
	for _, g := range rules {
		m, err := g.match()
		if err != nil {
			return nil, err
		}
		ms = append(ms, m)
	}
	return ms, nil
}
