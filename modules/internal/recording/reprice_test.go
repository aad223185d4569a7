package recording

import (
	"testing"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// A record gets the price of its own day, and stays as it is where its cost does not follow from
// its usage and a price.
func TestReprice(t *testing.T) {
	prices, err := catalog.Parse([]byte(`{"version":"2026-11-29","providers":[{"id":"acme","models":[
		{"id":"large","prices":[{"input":"1","output":"2"},{"from":"2026-11-10","input":"3","output":"4"}]}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	const before, since = 1_793_000_000_000, 1_794_500_000_000 // 2026-10-26, 2026-11-12
	record := func(change func(*storage.Record)) *storage.Record {
		r := &storage.Record{
			Provider: "acme", Model: "large", ResponseModel: "large", RequestModel: "alias", CreatedAt: before, UsageComplete: true,
			Dialect: plugins.Chat, Usage: plugins.Usage{Input: plugins.Known(10), Output: plugins.Known(1)},
		}
		if change != nil {
			change(r)
		}
		return r
	}
	for name, test := range map[string]struct {
		change     func(*storage.Record)
		cost, list plugins.Cost
	}{
		"no cost before":      {nil, plugins.KnownCost(12_000), plugins.Cost{}},
		"a wrong cost before": {func(r *storage.Record) { r.Cost, r.PriceVersion = plugins.KnownCost(1), "2026-01-01" }, plugins.KnownCost(12_000), plugins.Cost{}},
		"another day":         {func(r *storage.Record) { r.CreatedAt = since }, plugins.KnownCost(34_000), plugins.Cost{}},
		"a subscription":      {func(r *storage.Record) { r.Subscription = true }, plugins.Cost{}, plugins.KnownCost(12_000)},
		"the caller's name for the model, where credits paid": {func(r *storage.Record) { r.Model, r.PassthroughBilling = "cheap", true }, plugins.KnownCost(12_000), plugins.Cost{}},
		"an alias that is the name of another model":          {func(r *storage.Record) { r.Model, r.ResponseModel, r.RequestModel = "small", "small", "large" }, plugins.Cost{}, plugins.Cost{}},
		"a model without a price":                             {func(r *storage.Record) { r.Model, r.ResponseModel = "small", "small" }, plugins.Cost{}, plugins.Cost{}},
		"more than the usage is billed":                       {func(r *storage.Record) { r.UsageComplete = false }, plugins.Cost{}, plugins.Cost{}},
		"a counted cost":                                      {func(r *storage.Record) { r.CostCounted = true }, plugins.Cost{}, plugins.Cost{}},
		"a call that a crash cut off":                         {func(r *storage.Record) { r.EndState = storage.Interrupted }, plugins.Cost{}, plugins.Cost{}},
		"a model that the caller named":                       {func(r *storage.Record) { r.ModelOverride, r.Model = "large", "large"; r.ResponseModel = "other" }, plugins.Cost{}, plugins.Cost{}},
	} {
		r := record(test.change)
		was := *r
		got := Reprice(r, prices)
		switch {
		case got == nil && (test.cost.Valid || test.list.Valid):
			t.Errorf("%s: no cost", name)
		case got != nil && (got.Cost != test.cost || got.ListCost != test.list || got.PriceVersion != "2026-11-29"):
			t.Errorf("%s: %v, %v by %q", name, got.Cost, got.ListCost, got.PriceVersion)
		}
		if was.Cost != r.Cost || was.PriceVersion != r.PriceVersion {
			t.Errorf("%s: the record itself is changed", name)
		}
	}
}
