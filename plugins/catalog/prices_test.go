package catalog

import (
	"testing"

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
		for _, tier := range []string{"flex", "priority", "batch", "fast", "scale"} {
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
