package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirhq/weir/plugins/catalog"
)

// override is a line of overrides.txt: prices of a source that are not taken, and why.
type override struct {
	line   int
	fields [4]string // source, provider and model, which may end in "*", and tier
	used   bool
}

//go:embed overrides.txt
var overridesText string

var overrides = func() []*override {
	all, err := parseOverrides(overridesText)
	if err != nil {
		panic(err) // the tests read the file
	}
	return all
}()

// parseOverrides reads lines such as "litellm groq whisper-* standard: the reason".
func parseOverrides(text string) (all []*override, err error) {
	for i, line := range strings.Split(text, "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, why, _ := strings.Cut(line, ": ")
		fields := strings.Fields(what)
		if len(fields) != 4 || strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("overrides.txt:%d: want \"<source> <provider> <model> <tier>: <reason>\"", i+1)
		}
		if fields[3] == "standard" {
			fields[3] = ""
		}
		all = append(all, &override{line: i + 1, fields: [4]string(fields)})
	}
	return all, nil
}

// matches reports whether the line is about a price. The tiers of a source whose standard
// price is not taken are not taken either.
func (o *override) matches(source, provider, model, tier string) bool {
	for i, s := range []string{source, provider, model} {
		prefix, open := strings.CutSuffix(o.fields[i], "*")
		if s != prefix && !(open && strings.HasPrefix(s, prefix)) {
			return false
		}
	}
	return o.fields[3] == "" || o.fields[3] == tier
}

// overrideOf returns the override of a price of a source, nil if the price is to be taken.
func overrideOf(source, provider, model, tier string) *override {
	i := slices.IndexFunc(overrides, func(o *override) bool { return o.matches(source, provider, model, tier) })
	if i < 0 {
		return nil
	}
	return overrides[i]
}

// check prints the prices in which the built-in catalogue differs from the two packages
// without an override, those that do not fit their family, and the overrides that override nothing. It
// fails if there are some. It also says which prices are old, and, if there is a folder with judges,
// with which of them no judge agrees.
func check(judges string) error {
	c, err := readPackages()
	if err != nil {
		return err
	}
	tellAges(catalog.Default(), []source{genaiPin.source, litellmPin.source}, time.Now())
	if judges != "" {
		others, err := readJudges(judges)
		if err != nil {
			return err
		}
		compared, alone := others.judge(catalog.Default())
		fmt.Printf("%d of %d models that a judge has cost something else at each of them\n", alone, compared)
	}
	failed := checkFamilies(catalog.Default())
	for _, o := range origins {
		offers, err := c.offers(o)
		if err != nil {
			return err
		}
		for _, name := range offers.names() {
			var ours []catalog.Price
			if m, ok := catalog.Default().Lookup(o.id, name); ok {
				ours = m.Prices
			}
			for _, q := range offers.quotes(name) {
				failed += q.check(o.id, name, ours)
			}
		}
	}
	for _, o := range overrides {
		if !o.used && o.fields[0] != "models.dev" { // which the check does without
			failed++
			fmt.Printf("overrides.txt:%d: overrides nothing any more; delete it\n", o.line)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d differences; correct the catalogue, or give the reasons in overrides.txt", failed)
	}
	return nil
}

// check prints the tiers in which the source differs from our prices of a model without an
// override, and returns how many there are.
func (q quote) check(provider, model string, ours []catalog.Price) (unexplained int) {
	for _, tier := range q.tiers() {
		if o := overrideOf(q.source, provider, model, tier); o != nil {
			o.used = o.used || !agree(ours, q.prices, tier)
		} else if what := differs(ours, q.prices, tier); what != "" {
			unexplained++
			fmt.Printf("%s %s %s %s: %s\n", q.source, provider, model, cmp.Or(tier, "standard"), what)
		}
	}
	return unexplained
}

func (o *offers) names() []string {
	names := slices.Collect(maps.Keys(o.litellm))
	for _, r := range o.genai.rules[o.origin.genai] {
		plain, _ := split(r.Match)
		for _, name := range append(plain, r.ID) {
			if (o.sells == nil || o.sells(name)) && o.genai.find(o.origin.genai, name) == r {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// differs returns where two lists of prices disagree about a tier, "" for nowhere. A price
// of ours without rates is one that unknownAbove made: it says that nobody knows.
func differs(ours, theirs []catalog.Price, tier string) string {
	if agree(ours, theirs, tier) {
		return ""
	}
	for _, size := range sizes(ours, theirs) {
		p, q := priceAt(ours, tier, size), priceAt(theirs, tier, size)
		if q == nil || p != nil && (same(p, q) || *p == unknownPrice(tier, p.InputAbove, p.Source)) {
			continue
		}
		text, _ := json.Marshal([]*catalog.Price{p, q}) // strings and numbers
		return fmt.Sprintf("for %d tokens the prices are %s", size, text)
	}
	return ""
}
