package catalog

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weirhq/weir/plugins"
)

// What the calls of a batch cost together is never more than what their added usage costs at
// most, whatever their lengths and whenever the batch ends.
func TestBatchesCostNoMoreThanTheirSum(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	begins := late.Add(-36 * time.Hour)
	models := 0
	for m := range Default().Models() {
		if _, priced := tierOf(m); !priced {
			continue
		}
		models++
		for range 5 {
			var most, used plugins.Usage
			var cost plugins.Nanodollars
			longest, calls := int64(0), 1+r.Int64N(20)
			at := begins.Add(time.Duration(r.Int64N(int64(batchTime))))
			most.Input, most.Output = n(0), n(0)
			for range calls {
				input, output := 1+r.Int64N(m.InputLimit()), r.Int64N(m.OutputLimit()+1)
				read, written := r.Int64N(input+1), int64(0)
				if longest = max(longest, input); r.IntN(2) == 0 {
					written = r.Int64N(input - read + 1)
				}
				used = plugins.Usage{Input: n(input), Output: n(output), CacheRead: n(read), CacheWrite: n(written)}
				c := m.Cost(used, Conditions{At: at, Tier: plugins.BatchTier, Geography: []string{"", "us"}[r.IntN(2)]})
				if !c.Valid {
					c.N = 0
				}
				cost += c.N
				most.Add(plugins.Usage{Input: n(input), Output: n(output), CacheWrite: n(input)})
			}
			reserved := m.MaxCost(most, Conditions{At: begins, Tier: plugins.BatchTier, Longest: longest})
			if reserved.N += plugins.Nanodollars(calls); reserved.Valid && cost > reserved.N {
				t.Fatalf("%s %s: %d calls cost %s, and at most %s", m.Provider, m.ID, calls, cost, reserved.N)
			}
		}
	}
	if models < 100 {
		t.Errorf("only %d models have prices of batches", models)
	}
}

// A batch costs what its tier says, and has no price without one.
func TestBatchesAreBoundedByTheirTier(t *testing.T) {
	u := plugins.Usage{Input: n(1_000_000), Output: n(1_000_000)}
	for m := range Default().Models() {
		_, priced := tierOf(m)
		if most := m.MaxCost(u, Conditions{At: late, Tier: plugins.BatchTier}); most.Valid && !priced {
			t.Errorf("%s %s has no price of batches, and costs %s", m.Provider, m.ID, most.N)
		}
	}
	m, _ := Default().Lookup("anthropic", "claude-sonnet-4-5")
	if most := m.MaxCost(u, Conditions{At: late, Tier: plugins.BatchTier, Longest: 1000}); most.N != 9_000_000_000 {
		t.Errorf("a batch of Claude costs %s", most.N)
	}
}

// A search whose price is not known is set aside at the dearest one, unless the price of a request has it.
func TestSearchesWithoutAPriceAreBounded(t *testing.T) {
	u := plugins.Usage{Input: n(1000), Output: n(0), WebSearches: n(10)}
	input, request := rateOf(1*nano), rateOf(12_000_000)
	for want, p := range map[plugins.Nanodollars]Price{351_000_000: {Input: input, Output: input}, 13_000_000: {Input: input, Output: input, Request: request}} {
		m := &Model{ID: "m", Provider: "bedrock", Prices: []Price{p}}
		if got := m.MaxCost(u, Conditions{At: late}); got != plugins.KnownCost(want) {
			t.Errorf("%v is set aside, want %v", got, want)
		}
	}
}

// tierOf returns a price of batches with rates of tokens.
func tierOf(m *Model) (p *Price, ok bool) {
	for i := range m.Prices {
		if p = &m.Prices[i]; p.Tier == plugins.BatchTier {
			return p, true
		}
	}
	return nil, false
}

// Nothing in the tier of batches is charged by the call, which a sum of usages does not tell.
func TestBatchesHaveNoPriceForEachCall(t *testing.T) {
	for m := range Default().Models() {
		if p, ok := tierOf(m); ok && (p.Request.stated() || p.Hours != Hours{}) {
			t.Errorf("%s %s has a price for each call, or by the hour, of a batch", m.Provider, m.ID)
		}
	}
}
