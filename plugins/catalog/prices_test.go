package catalog

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
)

// The built-in prices of models on which the sources differ, by the vendors' lists.
func TestPricesWhereSourcesDiffer(t *testing.T) {
	const short, long = 1_000_000, 210_000
	for _, tt := range []struct {
		provider, model string
		input           int64 // tokens
		rates           [2]string
	}{
		{"bedrock", "amazon.titan-embed-text-v2:0", short, [2]string{"0.02", "0"}},
		{"azure", "gpt-4", short, [2]string{"30", "60"}},
		{"azure", "gpt-4o-2024-05-13", short, [2]string{"5", "15"}},
		{"azure", "claude-opus-4-6", long, [2]string{"5", "25"}},
		{"azure", "claude-opus-4-8", long, [2]string{"5", "25"}},
		{"vertex", "claude-opus-4-6@default", long, [2]string{"5", "25"}},
		{"vertex", "claude-opus-4-8@default", long, [2]string{"5", "25"}},
		{"mistral", "mistral-small-latest", short, [2]string{"0.15", "0.6"}},
		{"mistral", "mistral-large-latest", short, [2]string{"0.5", "1.5"}},
		{"mistral", "mistral-large-2411", short, [2]string{"2", "6"}},
		// A region of Bedrock's costs a tenth more than any.
		{"bedrock", "global.anthropic.claude-fable-5", short, [2]string{"10", "50"}},
		{"bedrock", "us.anthropic.claude-fable-5", short, [2]string{"11", "55"}},
		{"bedrock", "eu.anthropic.claude-fable-5", short, [2]string{"11", "55"}},
		{"bedrock", "anthropic.claude-fable-5", short, [2]string{"11", "55"}},
		{"bedrock", "eu.amazon.nova-pro-v1:0", short, [2]string{"1.05", "4.2"}},
	} {
		m, ok := Default().Lookup(tt.provider, tt.model)
		if !ok {
			t.Errorf("%s %s is not known", tt.provider, tt.model)
			continue
		}
		for i, u := range []plugins.Usage{{Input: n(tt.input), Output: n(0)}, {Input: n(tt.input), Output: n(1_000_000)}} {
			var b bill
			for j, tokens := range []int64{tt.input, 1_000_000}[:i+1] {
				r, err := ParseRate(tt.rates[j])
				if err != nil {
					t.Fatal(err)
				}
				b.tokens("input", tokens, r)
			}
			if got := m.Cost(u, Conditions{At: late}); got != b.total() && tt.rates[i] != "0" {
				t.Errorf("%s %s: %+v costs %+v, want %+v", tt.provider, tt.model, u, got, b.total())
			}
		}
	}
}

// The vendors' own lists, where a collection was late or counted by thousands.
func TestPricesByTheVendorsLists(t *testing.T) {
	day := func(d int) time.Time { return time.Date(2026, time.October, d, 12, 0, 0, 0, time.UTC) }
	for _, tt := range []struct {
		provider, model string
		conditions      Conditions
		cached          int64
		want            string // dollars for 100,000 tokens each way; "" is unknown
	}{
		{"mistral", "mistral-large-4", Conditions{At: day(28)}, 0, "0.554"},
		{"mistral", "mistral-large-4", Conditions{At: day(29)}, 0, "0.28"},
		{"mistral", "mistral-large-4", Conditions{At: late, Tier: "batch"}, 0, "0.14"}, // not that of before
		{"mistral", "mistral-large-4-0", Conditions{At: late}, 0, "0.28"},
		{"together", "Qwen/Qwen3.7-Max", Conditions{At: late}, 0, "1"},
		{"azure", "jais-30b-chat", Conditions{At: late}, 0, ""},
		{"cohere", "embed-multilingual-light-v3.0", Conditions{At: late}, 0, ""},
		{"zai", "glm-4.5-flash", Conditions{At: late}, 0, "0"},
		{"zai", "glm-4.7-flash", Conditions{At: late}, 50_000, "0"},
		{"zhipuai", "glm-4.7-flash", Conditions{At: late}, 0, "0"},
		{"fireworks", "accounts/fireworks/models/qwen3-8b", Conditions{At: late}, 50_000, "0.035"},
		{"fireworks", "kimi-k3", Conditions{At: late}, 50_000, "1.665"}, // a rate of its own
		{"openai", "gpt-6.1-sol", Conditions{At: late, Tier: "ultrafast"}, 0, "7.2"},
		{"openai", "gpt-6-astra", Conditions{At: late, Tier: "ultrafast"}, 50_000, "33.3"},
	} {
		u := plugins.Usage{Input: n(100_000), Output: n(100_000), CacheRead: n(tt.cached)}
		want := plugins.Cost{}
		if tt.want != "" {
			r, err := ParseRate(tt.want)
			if err != nil {
				t.Fatal(err)
			}
			want = cost(r.Nano())
		}
		if got := Default().Cost(tt.provider, tt.model, u, tt.conditions); got != want {
			t.Errorf("%s %s costs %+v, want %+v", tt.provider, tt.model, got, want)
		}
	}
}

// No price is above 20 times the median of its family, nor above 100 times the median of all if the
// family has fewer than three models: a source that takes a price for a thousand tokens for that of
// one is a thousand times too dear.
func TestPricesAreLikeThoseOfTheFamily(t *testing.T) {
	dear := []string{ // really are
		"gpt-4-32k", "gpt-4.5-preview", "meta-llama-3.1-405b-instruct",
	}
	toDigit := regexp.MustCompile(`^\D*\d?`)
	type priced struct {
		*Model
		rate Rate
	}
	for _, name := range []string{"input", "output"} {
		var all []priced
		families := make(map[string][]priced)
		for m := range Default().Models() {
			id := strings.ToLower(m.ID)
			for i := location.FindStringIndex(id); i != nil; i = location.FindStringIndex(id) {
				id = id[i[1]:]
			}
			if slices.Contains(dear, id) {
				continue
			}
			for _, p := range m.Prices {
				if r := *p.Rate(name); p.Tier == "" && !p.Regional && p.InputAbove == 0 && r.Nano() > 0 {
					families[toDigit.FindString(id)] = append(families[toDigit.FindString(id)], priced{m, r})
					all = append(all, priced{m, r})
				}
			}
		}
		median := func(list []priced) plugins.Nanodollars {
			slices.SortFunc(list, func(a, b priced) int { return cmp.Compare(a.rate.Nano(), b.rate.Nano()) })
			return list[len(list)/2].rate.Nano()
		}
		limit := 100 * median(all)
		for family, models := range families {
			limit := limit
			if len(models) >= 3 {
				limit = max(20*median(models), median(all)) // cheap families have wide ranges
			}
			for _, m := range models {
				if m.rate.Nano() > limit {
					t.Errorf("%s %s: %s is $%s, more than %s's limit of $%s", m.Provider, m.ID, name, m.rate, family, rateOf(int64(limit)))
				}
			}
		}
	}
}

// What a call costs for which a geography was chosen, by the vendors' lists.
func TestPricesOfAGeography(t *testing.T) {
	for _, tt := range []struct {
		provider, model, geography, tier string
		want                             int64 // dollars for ten million tokens, each way
	}{
		{"anthropic", "claude-opus-4-6", "", "", 50 + 250},
		{"anthropic", "claude-opus-4-6", "global", "standard", 50 + 250},
		{"anthropic", "claude-opus-4-6", "us", "standard", 55 + 275},
		{"anthropic", "claude-opus-4-8", "global", "fast", 100 + 500},
		{"anthropic", "claude-opus-4-8", "us", "fast", 110 + 550},
		{"anthropic", "claude-haiku-4-5", "not_available", "", 10 + 50}, // an older model runs anywhere
		{"openai", "gpt-5.4", "eu", "", 55 + 0},                         // beside a long input's own price below
		{"openai", "gpt-4o", "eu", "", 25 + 100},                        // older than the surcharge
		{"vertex", "claude-sonnet-4-6@default", "europe-west1", "", 33 + 165},
		{"vertex", "claude-sonnet-4-6@default", "global", "", 30 + 150},
		{"vertex", "gemini-2.5-pro", "us-central1", "", 25 + 150}, // of a long input
	} {
		u := plugins.Usage{Input: n(10_000_000), Output: n(10_000_000)}
		if tt.model == "gpt-5.4" { // priced for a long input: 5 x 1.1
			u.Output = n(0)
		}
		got := Default().Cost(tt.provider, tt.model, u, Conditions{At: late, Tier: tt.tier, Geography: tt.geography})
		if got != cost(plugins.Nanodollars(tt.want*nano)) {
			t.Errorf("%s %s in %q, tier %q: got %+v, want $%d", tt.provider, tt.model, tt.geography, tt.tier, got, tt.want)
		}
	}
}

// Each built-in price says which source it is from.
func TestPricesNameTheirSource(t *testing.T) {
	for m := range Default().Models() {
		for _, p := range m.Prices {
			if p.Source == "" && m.Provider != "echo" {
				t.Errorf("%s %s: %+v", m.Provider, m.ID, p)
			}
		}
	}
}

// No tier's price is that of the standard tier by mistake: a call in a tier without
// a price of its own has no known cost.
func TestTiersHaveTheirOwnPrices(t *testing.T) {
	u := plugins.Usage{Input: n(1000), Output: n(1000)}
	for m := range Default().Models() {
		has := make(map[string]bool)
		for _, p := range m.Prices {
			has[p.Tier] = true
		}
		for _, tier := range []string{"flex", "priority", "batch", "fast", "scale", "ultrafast"} {
			if m.Cost(u, Conditions{At: late, Tier: tier}).Valid && !has[tier] {
				t.Errorf("%s %s has a cost in %s and no price", m.Provider, m.ID, tier)
			}
		}
	}
}

func BenchmarkReadBuiltin(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := readBuiltin(); err != nil {
			b.Fatal(err)
		}
	}
}
