package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins/catalog"
)

func (c collections) merge() ([]provider, error) {
	var providers []provider
	var of []*offers
	for _, o := range origins {
		offers, err := c.offers(o)
		if err != nil {
			return nil, err
		}
		of = append(of, offers)
		models, err := offers.models()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.id, err)
		}
		providers = append(providers, provider{ID: o.id, Fallback: o.fallback, Models: models})
	}
	setOwners(providers)
	return addPriced(providers, of)
}

// offers is what the collections have of one provider.
type offers struct {
	origin
	genai     *genai
	litellm   map[string]*litellmModel
	uplifts   map[string]*big.Rat
	modelsDev []*modelsDevModel
}

func (c collections) offers(o origin) (*offers, error) {
	if _, ok := c.genai.rules[o.genai]; !ok && o.genai != "" {
		return nil, fmt.Errorf("genai-prices has no provider %q", o.genai)
	}
	described, err := c.modelsDev.models(o.modelsDev)
	return &offers{o, c.genai, c.litellm.models(o), c.litellm.uplifts(o), described}, err
}

// quotes returns the prices of a name by source, the preferred source first: genai-prices knows when a
// price changed.
func (o *offers) quotes(name string) (quotes []quote) {
	add := func(source string, prices []catalog.Price) {
		if len(prices) > 0 && o.keeps(name, prices) {
			quotes = append(quotes, quote{source, prices})
		}
	}
	if r := o.genai.find(o.origin.genai, name); r != nil && o.keeps(r.ID, r.prices) {
		add(genaiPin.Name, r.prices)
	}
	if m, ok := o.litellm[o.latest(name)]; ok {
		add(litellmPin.Name, m.prices)
	}
	if i := slices.IndexFunc(o.modelsDev, func(d *modelsDevModel) bool { return d.ID == name }); i >= 0 {
		add("models.dev", o.modelsDev[i].prices)
	}
	return quotes
}

// snapshot finds the date of a snapshot at the end of its name.
var snapshot = regexp.MustCompile(`^-20\d\d-\d\d-\d\d$`)

// latest returns the name under which LiteLLM has a model: its own, or else that of its latest snapshot,
// where the price of audio stands alone for some models.
func (o *offers) latest(name string) string {
	latest := name
	if _, ok := o.litellm[name]; ok {
		return name
	}
	for other := range o.litellm {
		if date, ok := strings.CutPrefix(other, name); ok && snapshot.MatchString(date) {
			latest = max(latest, other)
		}
	}
	return latest
}

// withoutGuessesOfAudio makes the rates of audio unknown that no source has for a model of that name, which
// writes text and audio: else audio would be charged as text, which costs a tenth.
func withoutGuessesOfAudio(m *catalog.Model) {
	if !strings.Contains(m.ID, "audio") || !slices.Contains(m.Output, "audio") || !slices.Contains(m.Output, "text") {
		return
	}
	for i := range m.Prices {
		p := &m.Prices[i]
		for _, r := range []*catalog.Rate{&p.InputAudio, &p.OutputAudio} {
			if !r.Known() && p.Input.Nano() > 0 {
				*r = catalog.UnknownRate
			}
		}
	}
}

func (o *offers) prices(name string) ([]catalog.Price, error) {
	quotes := o.quotes(name)
	for i, q := range quotes {
		quotes[i].prices = slices.DeleteFunc(slices.Clone(q.prices), func(p catalog.Price) bool {
			return overrideOf(q.source, o.id, name, p.Tier) != nil
		})
	}
	prices := decide(quotes)
	if o.halfReads {
		if err := halveReads(prices); err != nil {
			return nil, err
		}
	}
	regional, err := regional(prices, o.uplifts[name])
	return append(prices, regional...), err
}

// halveReads sets the rate of cached input, where no source has one, to half of the input's.
func halveReads(prices []catalog.Price) error {
	for i := range prices {
		p := &prices[i]
		if p.CacheRead.String() != "" || p.Input.Nano() == 0 {
			continue
		}
		if err := (unit{"cache_read", big.NewRat(1, 2)}).set(p, json.Number(p.Input.String())); err != nil {
			return err
		}
	}
	return nil
}

// setOwners sets the owner of models whose id does not name it: the owner of the
// maker's own model of the same name.
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

// models returns the models of models.dev, and one for each model of genai-prices that matches none of
// them. A name in genai-prices is an alias of the model that it matches, unless it has other prices.
func (o *offers) models() ([]*catalog.Model, error) {
	var err error
	var models []*catalog.Model
	matched := make(map[*rule][]*catalog.Model)
	taken := make(map[string]bool) // ids and aliases
	for _, d := range o.modelsDev {
		m := d.model()
		m.Owner = o.owner(cmp.Or(d.BaseModel, d.ID))
		if m.Prices, err = o.prices(d.ID); err != nil {
			return nil, err
		}
		withoutGuessesOfAudio(m)
		if r := o.genai.find(o.origin.genai, d.ID); r != nil {
			matched[r] = append(matched[r], m)
		}
		models = append(models, m)
		taken[m.ID] = true
	}
	// Rules keep their order, since the first that matches counts.
	var ordered []*catalog.Model
	for _, r := range o.genai.rules[o.origin.genai] {
		m := representative(r, matched[r])
		if m == nil {
			if taken[r.ID] || o.sells != nil && !o.sells(r.ID) {
				continue
			}
			m = &catalog.Model{ID: r.ID, Name: r.Name, Context: r.Context, Owner: o.owner(r.ID)}
			if m.Prices, err = o.prices(r.ID); err != nil {
				return nil, err
			}
			taken[m.ID] = true
		}
		ordered = append(ordered, m)
		names, match := split(r.Match)
		for _, name := range append(names, r.ID) {
			if taken[name] {
				continue
			}
			taken[name] = true
			prices, err := o.prices(name)
			if err != nil {
				return nil, err
			}
			if covers(m.Prices, prices) {
				m.Aliases = append(m.Aliases, name)
				continue
			}
			other := *m
			other.ID, other.Aliases, other.Match, other.Prices = name, nil, nil, prices
			ordered = append(ordered, &other)
		}
		m.Match = match
	}
	for _, m := range models {
		if !slices.Contains(ordered, m) {
			ordered = append(ordered, m)
		}
	}
	return ordered, nil
}

// representative returns the model for all names of a rule: the one with the rule's id, else the one
// with the shortest id, or nil.
func representative(r *rule, models []*catalog.Model) *catalog.Model {
	if len(models) == 0 {
		return nil
	}
	return slices.MinFunc(models, func(a, b *catalog.Model) int {
		rank := func(m *catalog.Model) int {
			if m.ID == r.ID {
				return 0
			}
			return len(m.ID)
		}
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.ID, b.ID))
	})
}

// addPriced adds the names that only LiteLLM has, unless a look-up finds the same prices.
func addPriced(providers []provider, of []*offers) ([]provider, error) {
	text, err := json.Marshal(map[string]any{"providers": providers})
	if err != nil {
		return nil, err
	}
	models, err := catalog.Parse(text)
	if err != nil {
		return nil, err
	}
	for i, o := range of {
		for _, name := range slices.Sorted(maps.Keys(o.litellm)) {
			prices, err := o.prices(name)
			if err != nil {
				return nil, err
			}
			m, ok := models.Lookup(o.id, name)
			if len(prices) == 0 || ok && (m.Provider == o.id && named(m, name) || covers(m.Prices, prices)) {
				continue
			}
			providers[i].Models = append(providers[i].Models, &catalog.Model{ID: name, Owner: o.owner(name), Prices: prices})
		}
	}
	return providers, nil
}

func named(m *catalog.Model, name string) bool {
	return m.ID == name || slices.Contains(m.Aliases, name)
}

// covers reports whether prices equal others in all tiers of others, and depend on the geography if
// others do.
func covers(prices, others []catalog.Price) bool {
	regional := func(p catalog.Price) bool { return p.Regional }
	if slices.ContainsFunc(others, regional) && !slices.ContainsFunc(prices, regional) {
		return false
	}
	for _, p := range others {
		if !agree(prices, others, p.Tier) {
			return false
		}
	}
	return true
}

// split returns the plain names of a rule, and the rest of it, which may be nil.
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

// owner returns the maker in the id of a model, such as "meta-llama/llama-4" or
// "us.anthropic.claude-opus-4-8", "" if the id has none.
func (o origin) owner(id string) string {
	maker, _, ok := strings.Cut(id, "/")
	if o.id == "bedrock" && !ok {
		parts := strings.Split(id, ".")
		if len(parts) > 2 && located(id) {
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

func located(id string) bool {
	location, _, _ := strings.Cut(id, ".")
	return slices.Contains([]string{"us", "us-gov", "eu", "apac", "au", "jp", "ca", "in", "sa", "global", "regional"}, location)
}
