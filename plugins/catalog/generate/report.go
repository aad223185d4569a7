package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/weirhq/weir/plugins/catalog"
)

// difference is a price of a source that the catalogue does not have.
type difference struct {
	source, provider, model, tier string
	what                          string
}

// compare prints the prices in which the built-in catalogue differs from the two
// packages, and fails if the file at path does not give a reason for each.
func compare(in inputs, path string) error {
	reasons, err := readReasons(path)
	if err != nil {
		return err
	}
	var c collections
	if c.genai, c.litellm, err = in.packages(); err != nil {
		return err
	}
	differences, err := c.differences(catalog.Default())
	if err != nil {
		return err
	}
	unexplained, allowed := 0, 0
	for _, d := range differences {
		if i := slices.IndexFunc(reasons, func(r *reason) bool { return r.explains(d) }); i >= 0 {
			reasons[i].used = true
			allowed++
			continue
		}
		unexplained++
		fmt.Printf("%s %s %s %s: %s\n", d.source, d.provider, d.model, d.tier, d.what)
	}
	for _, r := range reasons {
		if !r.used {
			unexplained++
			fmt.Printf("%s:%d: explains nothing any more; delete it\n", path, r.line)
		}
	}
	fmt.Printf("%d differences have a reason in %s\n", allowed, path)
	if unexplained > 0 {
		return fmt.Errorf("%d differences without one; correct the catalogue, or give the reason", unexplained)
	}
	return nil
}

// differences are those between a catalogue and the two packages, on the day of
// the newer of them.
func (c collections) differences(ours *catalog.Catalog) (all []difference, err error) {
	for _, o := range origins {
		offers, err := c.offers(o)
		if err != nil {
			return nil, err
		}
		for _, name := range offers.names() {
			quotes, err := offers.quotes(name)
			if err != nil {
				return nil, err
			}
			var prices []catalog.Price
			if m, ok := ours.Lookup(o.id, name); ok {
				prices = m.Prices
			}
			for _, q := range quotes {
				for _, tier := range q.tiers() {
					if d := (difference{q.source, o.id, name, tier, differs(prices, q.prices, tier)}); d.what != "" {
						all = append(all, d)
					}
				}
			}
		}
	}
	return all, nil
}

// names are all that the two packages have.
func (o *offers) names() []string {
	names := slices.Collect(maps.Keys(o.litellm))
	for _, r := range o.genai.rules[o.origin.genai] {
		plain, _ := split(r.match)
		for _, name := range append(plain, r.ID) {
			if (o.sells == nil || o.sells(name)) && o.genai.find(o.origin.genai, name) == r {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// tiers are those that the source has prices for.
func (q quote) tiers() (tiers []string) {
	for _, p := range q.prices {
		tiers = append(tiers, p.Tier)
	}
	slices.Sort(tiers)
	return slices.Compact(tiers)
}

// differs returns where two lists of prices disagree about a tier, "" for nowhere.
func differs(ours, theirs []catalog.Price, tier string) string {
	if agree(ours, theirs, tier, today()) {
		return ""
	}
	for _, size := range sizes(ours, theirs) {
		p, q := priceAt(ours, tier, size, today()), priceAt(theirs, tier, size, today())
		if q != nil && (p == nil || !same(p, q)) {
			return fmt.Sprintf("for %d tokens ours is %s, theirs %s", size, show(p), show(q))
		}
	}
	return ""
}

// show is the rates of a price that are compared.
func show(p *catalog.Price) string {
	if p == nil {
		return "unknown"
	}
	var parts []string
	for _, name := range []string{"input", "output", "search_unit", "image", "page", "audio_hour"} {
		if r := p.Rate(name); r.Known() {
			parts = append(parts, name+" "+r.String())
		}
	}
	return "{" + strings.Join(parts, ", ") + "} (" + p.Source + ")"
}

// reason explains differences: those of a source, provider, model and tier, each of
// which may end in "*".
type reason struct {
	line   int
	fields [4]string
	used   bool
}

func (r *reason) explains(d difference) bool {
	for i, s := range []string{d.source, d.provider, d.model, d.tier} {
		prefix, open := strings.CutSuffix(r.fields[i], "*")
		if s != prefix && !(open && strings.HasPrefix(s, prefix)) {
			return false
		}
	}
	return true
}

// readReasons reads lines such as "litellm groq whisper-* standard: the reason".
func readReasons(path string) (reasons []*reason, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		what, why, _ := strings.Cut(line, ": ")
		fields := strings.Fields(what)
		if len(fields) != 4 || strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, errors.New("want \"<source> <provider> <model> <tier>: <reason>\""))
		}
		if fields[3] == "standard" {
			fields[3] = ""
		}
		reasons = append(reasons, &reason{line: i + 1, fields: [4]string(fields)})
	}
	return reasons, nil
}
