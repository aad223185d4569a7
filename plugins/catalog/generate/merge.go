package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins/catalog"
)

func merge(priced []genaiProvider, described map[string]modelsDevProvider) ([]provider, error) {
	byID := make(map[string]genaiProvider)
	for _, g := range priced {
		byID[g.ID] = g
	}
	var providers []provider
	for _, o := range origins {
		var models []modelsDevModel
		for _, id := range o.modelsDev {
			all, ok := described[id]
			if !ok {
				return nil, fmt.Errorf("models.dev has no provider %q", id)
			}
			for _, key := range slices.Sorted(maps.Keys(all.Models)) {
				m := all.Models[key]
				if !slices.ContainsFunc(models, func(o modelsDevModel) bool { return o.ID == m.ID }) {
					models = append(models, m)
				}
			}
		}
		g, ok := byID[o.genai]
		if !ok && o.genai != "" {
			return nil, fmt.Errorf("genai-prices has no provider %q", o.genai)
		}
		p := provider{ID: o.id, Fallback: o.fallback}
		var err error
		if p.Models, err = o.models(g.Models, models); err != nil {
			return nil, fmt.Errorf("%s: %w", o.id, err)
		}
		providers = append(providers, p)
	}
	setOwners(providers)
	return providers, nil
}

// setOwners gives models whose id tells no maker that of the maker's own model
// of the same name.
func setOwners(providers []provider) {
	owners := make(map[string]string)
	for i, p := range providers {
		for _, m := range p.Models {
			if origins[i].maker != "" {
				owners[m.ID] = m.Owner
			}
		}
	}
	for _, p := range providers {
		for _, m := range p.Models {
			m.Owner = cmp.Or(m.Owner, owners[m.ID])
		}
	}
}

// rule is a model of genai-prices: it says which names have which prices.
type rule struct {
	genaiModel
	match  catalog.Match
	prices []catalog.Price
	models []*catalog.Model // those of models.dev that it matches
}

// models are those of models.dev, with the prices of the first rule that
// matches their id, else with their own; and one for each rule that matches
// none of them, with its prices alone.
func (o origin) models(priced []genaiModel, described []modelsDevModel) ([]*catalog.Model, error) {
	rules, err := o.rules(priced)
	if err != nil {
		return nil, err
	}
	var models []*catalog.Model
	taken := make(map[string]bool) // ids and aliases
	for _, d := range described {
		m := d.model()
		m.Owner = o.owner(cmp.Or(d.BaseModel, d.ID))
		if i := slices.IndexFunc(rules, func(r *rule) bool { return r.match.Matches(d.ID) }); i >= 0 {
			m.Prices = rules[i].prices
			rules[i].models = append(rules[i].models, m)
		} else if m.Prices, err = d.prices(); err != nil {
			return nil, fmt.Errorf("%s: %w", d.ID, err)
		} else if !o.believes(d.ID, m.Prices) {
			m.Prices = nil
		}
		tiers, err := d.tierPrices()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.ID, err)
		}
		m.Prices = slices.Concat(m.Prices, tiers)
		models = append(models, m)
		taken[m.ID] = true
	}
	// Rules keep their order, since the first that matches counts.
	var ordered []*catalog.Model
	for _, r := range rules {
		m := r.model()
		if m == nil {
			if taken[r.ID] || o.sells != nil && !o.sells(r.ID) {
				continue
			}
			m = &catalog.Model{ID: r.ID, Name: r.Name, Context: r.Context, Prices: r.prices, Owner: o.owner(r.ID)}
			taken[m.ID] = true
		}
		aliases, match := split(r.match)
		for _, alias := range append(aliases, r.ID) {
			if !taken[alias] {
				taken[alias] = true
				m.Aliases = append(m.Aliases, alias)
			}
		}
		m.Match = match
		ordered = append(ordered, m)
	}
	for _, m := range models {
		if !slices.Contains(ordered, m) {
			ordered = append(ordered, m)
		}
	}
	return ordered, nil
}

func (o origin) rules(priced []genaiModel) ([]*rule, error) {
	var rules []*rule
	for _, g := range priced {
		r := &rule{genaiModel: g}
		var err error
		if r.match, err = g.Match.match(); err != nil {
			return nil, fmt.Errorf("%s: %w", g.ID, err)
		}
		if r.prices, err = g.prices(); err != nil {
			return nil, fmt.Errorf("%s: %w", g.ID, err)
		}
		if !o.believes(g.ID, r.prices) {
			r.prices = nil
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// model is the one that stands for all names of the rule: that with the rule's
// id, else the one with the shortest id. Nil if the rule matches none.
func (r *rule) model() *catalog.Model {
	if len(r.models) == 0 {
		return nil
	}
	return slices.MinFunc(r.models, func(a, b *catalog.Model) int {
		rank := func(m *catalog.Model) int {
			if m.ID == r.ID {
				return 0
			}
			return len(m.ID)
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID))
	})
}

// split takes the plain names out of a rule; what is left may be nil.
func split(m catalog.Match) (names []string, rest *catalog.Match) {
	kids := m.Or
	if kids == nil {
		kids = []catalog.Match{m}
	}
	var rules []catalog.Match
	for _, k := range kids {
		if k.Equals != "" {
			names = append(names, k.Equals)
		} else {
			rules = append(rules, k)
		}
	}
	switch len(rules) {
	case 0:
		return names, nil
	case 1:
		return names, &rules[0]
	}
	return names, &catalog.Match{Or: rules}
}

// owner is the maker of a model, as far as its id tells: "meta-llama/llama-4",
// "us.anthropic.claude-opus-4-8". Empty if unknown.
func (o origin) owner(id string) string {
	maker, _, ok := strings.Cut(id, "/")
	if o.id == "bedrock" && !ok {
		parts := strings.Split(id, ".")
		if len(parts) > 2 && slices.Contains([]string{"us", "eu", "apac", "au", "jp", "global", "regional"}, parts[0]) {
			parts = parts[1:]
		}
		maker, ok = parts[0], len(parts) > 1
	}
	maker = strings.ToLower(strings.TrimPrefix(maker, "~"))
	if o.maker != "" {
		return o.maker
	}
	if !ok || maker == "accounts" {
		return ""
	}
	return cmp.Or(makers[maker], maker)
}
