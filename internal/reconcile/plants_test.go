package reconcile

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/weirhq/weir/plugins"
)

// sources are the bills that can be read, by the name that records have for the provider.
var sources = []string{"openai", "anthropic", "openrouter", "bedrock", "vertex"}

// plant is a way in which a bill and the records of a month differ.
type plant struct {
	// name is that in the table of docs/reconcile.md.
	name  string
	plant func(*scene)
	// want are the differences, as reason and day of October, of each source that is not in other.
	want  []string
	other map[string][]string
	// check checks the differences in place of want, if they are on each day. All are of reason.
	check  func(*testing.T, *Report)
	reason Reason
	// listed is in what cannot be compared.
	listed string
	// absent says why a source cannot have the difference. It is planted all the same.
	absent map[string]string
}

var plants = []plant{
	{name: "a key that bypasses Weir", plant: func(s *scene) {
		for _, day := range []int{3, 4, 9} {
			s.vendor.calls = append(s.vendor.calls, billedCall{s.recorded[s.on(day, 3)], "key_other"})
		}
	}, want: []string{"outside 3", "outside 4", "outside 9"}},
	{name: "a call that is recorded twice", plant: func(s *scene) {
		s.recorded = append(s.recorded, s.recorded[s.on(5, 3)])
	}, want: []string{"duplicate 5"}},
	{name: "another service tier", plant: func(s *scene) {
		i := s.on(6, 0)
		if s.vendor.provider == "openrouter" { // whose activity has no tiers
			s.vendor.calls[i].Cost.N /= 2
			return
		}
		s.recorded[i] = priced(withoutCache(s.recorded[i]))
		s.vendor.calls[i].Call = priced(with(s.recorded[i], func(c *Call) { c.Tier = plugins.BatchTier }))
	}, want: []string{"tier 6", "tier 6"}, other: map[string][]string{"openrouter": {"price 6"}}},
	{name: "a cache that is kept longer", plant: func(s *scene) {
		c := &s.vendor.calls[s.on(7, 1)]
		if !c.Usage.CacheWrite1h.Valid { // records do not say for how long
			c.Cost.N *= 2
			return
		}
		c.Usage.CacheWrite1h = c.Usage.CacheWrite
		c.Call = priced(c.Call)
	}, want: []string{"cache 7"}, other: map[string][]string{"openai": {"price 7"}, "openrouter": {"price 7"}}},
	{name: "amounts that are rounded to cents", plant: func(s *scene) { s.vendor.decimals = 2 }},
	{name: "a batch that is billed on a later day", plant: func(s *scene) {
		c := withoutCache(s.recorded[s.on(8, 0)])
		if c.ResponseID = "late"; s.vendor.provider != "openrouter" {
			c.Tier = plugins.BatchTier
		}
		c = priced(c)
		s.recorded = append(s.recorded, c)
		c.Start = c.Start.AddDate(0, 0, 1)
		s.vendor.calls = append(s.vendor.calls, billedCall{c, "key_weir"})
	}, want: []string{"timing 8", "timing 9"}},
	{name: "days of another time zone", plant: func(s *scene) { s.vendor.zone = -8 }, check: checkTimeZone, reason: TimeZone},
	{name: "a failed call that is billed", plant: func(s *scene) {
		c := &s.recorded[s.on(10, 4)]
		c.Usage, c.Cost, c.Complete, c.Status, c.Tier = plugins.Usage{}, plugins.Cost{}, false, 502, ""
	}, want: []string{"failed 10"}},
	{name: "reasoning that answers do not count as output", plant: func(s *scene) {
		c := &s.vendor.calls[s.on(11, 5)]
		c.Usage.Output.N += c.Usage.Reasoning.N
		c.Call = priced(c.Call)
	}, want: []string{"reasoning 11"}, absent: map[string]string{"anthropic": "answers count thinking as output"}},
	{name: "a discount", plant: func(s *scene) { s.vendor.rate = 0.9 }, check: checkDiscount, reason: Discount},
	{name: "a call that a subscription paid", plant: func(s *scene) {
		c := with(s.recorded[s.on(12, 0)], func(c *Call) { c.ResponseID = "subscription" })
		c.Subscription, c.ListCost, c.Cost = true, c.Cost, plugins.Cost{}
		s.recorded = append(s.recorded, c)
	}, listed: "calls that a subscription paid", absent: map[string]string{
		"openrouter": "no subscription pays for calls", "bedrock": "no subscription pays for calls", "vertex": "no subscription pays for calls",
	}},
	{name: "records that Weir lost", plant: func(s *scene) {
		i := s.on(13, 6)
		s.options.Losses = []Loss{{s.recorded[i].Start, s.recorded[i+1].End, 2}}
		s.recorded = slices.Delete(s.recorded, i, i+2)
	}, want: []string{"lost 13", "lost 13"}},
}

// withoutCache is a call that used no cache, whose price in batches some providers lack.
func withoutCache(c Call) Call {
	c.Usage.CacheRead, c.Usage.CacheWrite, c.Usage.CacheWrite1h = plugins.Known(0), plugins.Known(0), plugins.Known(0)
	return c
}

// wantAt returns the differences at a source.
func (p *plant) wantAt(source string) []string {
	if other, ok := p.other[source]; ok {
		return other
	}
	return p.want
}

// checkTimeZone checks that the days of the bill are those of UTC-8, and that nothing else differs.
func checkTimeZone(t *testing.T, r *Report) {
	t.Helper()
	if r.Agrees || slices.ContainsFunc(r.Differences, func(d Difference) bool { return d.Reason != TimeZone || !strings.HasSuffix(d.Explanation, "UTC-8") }) {
		t.Errorf("found %q", reasonsOf(r))
	}
}

// checkDiscount checks that both models are 10 % cheaper on each day.
func checkDiscount(t *testing.T, r *Report) {
	t.Helper()
	if len(r.Differences) != 62 || slices.ContainsFunc(r.Differences, func(d Difference) bool {
		return d.Reason != Discount || d.Explanation != "all prices are 10 % lower than the catalogue's"
	}) {
		t.Errorf("found %q", reasonsOf(r))
	}
}

// The manual says what is found at each source.
func TestManualHasThePlants(t *testing.T) {
	manual, err := os.ReadFile("../../docs/reconcile.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, p := range plants {
		row := "| " + p.name + " |"
		for _, source := range sources {
			row += " " + p.cell(source) + " |"
		}
		rows = append(rows, row)
	}
	_, table, _ := strings.Cut(string(manual), "| difference | OpenAI | Anthropic | OpenRouter | AWS | Google |\n|---|---|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	if want := strings.Join(rows, "\n"); table != want {
		t.Errorf("docs/reconcile.md has the rows\n%s\nexpected\n%s", table, want)
	}
}

// cell is what the manual says of the difference at a source.
func (p *plant) cell(source string) string {
	reason := p.reason
	if want := p.wantAt(source); len(want) > 0 {
		first, _, _ := strings.Cut(want[0], " ")
		reason = Reason(first)
	}
	switch {
	case p.absent[source] != "":
		return "cannot be: " + p.absent[source]
	case reason != "":
		return "`" + string(reason) + "`"
	case p.listed != "":
		return "none; it is [listed](#what-is-not-compared)"
	}
	return "none"
}
