package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
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
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Match   catalog.Match `json:"match"`
	Context int64         `json:"context_window"`
	Sets    genaiPrices   `json:"prices"`
	// Variants are rates that replace those of the same unit in some contexts.
	Variants []struct {
		When map[string]string `json:"when"`
		genaiPrice
	} `json:"price_variants"`

	prices []catalog.Price // nil if the model charges for what usages do not count
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
	Rates map[string]genaiRate `json:"prices"`
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
	var providers []struct {
		ID       string   `json:"id"`
		Models   []*rule  `json:"models"`
		Fallback []string `json:"fallback_model_providers"`
	}
	if err := json.Unmarshal(text, &providers); err != nil {
		return nil, err
	}
	g := &genai{make(map[string][]*rule), make(map[string][]string)}
	for _, p := range providers {
		g.fallback[p.ID], g.rules[p.ID] = p.Fallback, p.Models
		for _, r := range p.Models {
			if err := r.read(); errors.Is(err, errUncounted) {
				r.prices = nil
			} else if err != nil {
				return nil, fmt.Errorf("%s: %w", r.ID, err)
			}
		}
	}
	return g, nil
}

// find is the first rule that holds for a name, of the provider or else of those that it resells, or nil.
func (g *genai) find(provider, name string) *rule {
	for _, id := range append([]string{provider}, g.fallback[provider]...) {
		rules := g.rules[id]
		if i := slices.IndexFunc(rules, func(r *rule) bool { return r.Match.Matches(name) }); i >= 0 {
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
	return json.Unmarshal(b, &(*p)[0].Rates)
}

func (r *genaiRate) UnmarshalJSON(b []byte) error {
	if b[0] == '{' {
		type plain genaiRate
		return json.Unmarshal(b, (*plain)(r))
	}
	return json.Unmarshal(b, &r.Base)
}

func (r genaiRate) priceFor(input int64) json.Number {
	n := r.Base
	for _, t := range r.Tiers {
		if input >= t.Start {
			n = t.Price
		}
	}
	return n
}

var errUncounted = errors.New("charges for what usages don't count")

// read sets the prices. An empty set of rates is 0.
func (r *rule) read() error {
	var from catalog.Date
	base := r.Sets[0].Rates
	for _, set := range r.Sets {
		if err := r.add(set, &from, ""); err != nil {
			return err
		}
		if (set.Constraint == nil || set.Constraint.StartDate != "") && from <= today {
			base = set.Rates
		}
	}
	for _, v := range r.Variants {
		tier := v.When["service_tier"] + v.When["processing"] + v.When["speed"]
		if len(v.When) != 1 || tier == "" || tier == "default" {
			continue // depends on what no usage reports, or is no tier
		}
		rates := maps.Clone(base)
		maps.Copy(rates, v.Rates)
		v.Rates, from = rates, 0
		if err := r.add(v.genaiPrice, &from, tier); err != nil {
			return err
		}
	}
	// The last price that holds counts, and some lists of variants begin with the newest.
	slices.SortStableFunc(r.prices, func(a, b catalog.Price) int {
		return cmp.Or(cmp.Compare(a.Tier, b.Tier), cmp.Compare(a.From, b.From))
	})
	return nil
}

// add appends the prices of one set of rates. A constraint can't hold both a date
// and hours, so that the hours that follow a date are those from that date on.
func (r *rule) add(set genaiPrice, from *catalog.Date, tier string) (err error) {
	when := catalog.Price{Tier: tier}
	if c := set.Constraint; c != nil && c.StartDate != "" {
		*from, err = catalog.ParseDate(c.StartDate)
	} else if c != nil {
		when.Hours, err = catalog.ParseHours(clock(c.StartTime) + "-" + clock(c.EndTime))
	}
	if err != nil {
		return err
	}
	when.From = *from
	starts := []int64{0} // the sizes of input at which some rate changes
	for _, rate := range set.Rates {
		for _, t := range rate.Tiers {
			starts = append(starts, t.Start)
		}
	}
	slices.Sort(starts)
	for _, start := range slices.Compact(starts) {
		p := when
		p.InputAbove = start
		if err := setGenaiRates(&p, set.Rates, start); err != nil {
			return err
		}
		r.prices = append(r.prices, p)
	}
	return nil
}

// clock is a time of day in UTC, such as "16:30:00Z" or "16:30:00+00:00", without
// its seconds.
func clock(s string) string {
	s = strings.TrimSuffix(strings.TrimSuffix(s, "Z"), "+00:00")
	return strings.TrimSuffix(s, ":00")
}

var thousandth = big.NewRat(1, 1000)

// genaiUnits are the units of genai-prices. Units without a rate are optional extras that
// usages do not count.
var genaiUnits = map[string]unit{
	"input_mtok":            {"input", one},
	"output_mtok":           {"output", one},
	"cache_read_mtok":       {"cache_read", one},
	"cache_write_mtok":      {"cache_write", one},
	"cache_write_1h_mtok":   {"cache_write_1h", one},
	"input_audio_mtok":      {"input_audio", one},
	"cache_audio_read_mtok": {"cache_read_audio", one},
	"input_image_mtok":      {"input_image", one},
	"output_audio_mtok":     {"output_audio", one},
	"output_image_mtok":     {"output_image", one},
	"output_reasoning_mtok": {"reasoning", one},
	"requests_kcount":       {"request", thousandth},
	"web_searches_kcount":   {"web_search", thousandth},
	"audio_hours":           {"audio_hour", one},
	"input_audio_hours":     {"audio_hour", one}, // the same price
	"input_document_kpages": {"page", thousandth},

	"storage_searches_kcount":         {},
	"cache_image_read_mtok":           {},
	"input_video_mtok":                {},
	"input_annotated_document_kpages": {},
}

func setGenaiRates(p *catalog.Price, rates map[string]genaiRate, input int64) error {
	if len(rates) == 0 {
		zero := genaiRate{Base: "0"}
		rates = map[string]genaiRate{"input_mtok": zero, "output_mtok": zero}
	}
	for name, rate := range rates {
		switch name {
		case "input_mchars", "input_text_messages_kcount", "output_citation_mtok", "output_video_mtok":
			return errUncounted
		}
		unit, ok := genaiUnits[name]
		if !ok {
			return fmt.Errorf("unknown unit %q of price", name)
		}
		if unit.rate == "" {
			continue
		}
		if err := unit.set(p, rate.priceFor(input)); err != nil {
			return err
		}
	}
	return nil
}
