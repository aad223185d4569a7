package llmapp

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// A call without a price counts as unpriced if it tells what it used: one that tells
// nothing lacks no price. Names that the catalogue does not list share one series.
func TestUnpricedCallsAreCounted(t *testing.T) {
	usage := plugins.Usage{Input: plugins.Known(10)}
	listed, err := catalog.Parse([]byte(`{"providers": [{"id": "lab", "models": [{"id": "listed"}, {"id": "answered"}, {"id": "routed"}, {"id": "grown"}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	metrics := newMetrics(listed, nil)
	for _, r := range []storage.Record{
		{Provider: "lab", Model: "listed", Usage: usage},
		{Provider: "lab", Model: "listed", Usage: usage, Cost: plugins.KnownCost(1)},
		{Provider: "lab", Model: "listed"},
		{Provider: "lab", Model: "made-up-1", Usage: usage},
		{Provider: "lab", Model: "made-up-2", Usage: usage},
		{Provider: "lab", Model: "answered", Cost: plugins.KnownCost(0), AnswerCache: storage.CacheHit, SavedCost: plugins.KnownCost(2e9)},
		{Provider: "lab", Model: "routed", Cost: plugins.KnownCost(0), AnswerCache: storage.CacheMiss, RoutingSavings: plugins.KnownCost(3e9)},
	} {
		metrics.Observe(&r)
	}
	session := storage.Record{Provider: "lab", Model: "grown", Usage: usage, Cost: plugins.KnownCost(1e9)}
	metrics.Observe(&session)
	more := session
	more.Usage.Input, more.Cost = plugins.Known(25), plugins.KnownCost(3e9)
	metrics.ObserveUsage(&more, &session)
	metrics.ObserveUsage(&session, &more) // less than was counted
	registry := prometheus.NewRegistry()
	if err := registerMetrics(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["provider"] == "lab" && m.GetCounter() != nil {
				got[f.GetName()+" "+labels["model"]] = m.GetCounter().GetValue()
			}
		}
	}
	for series, want := range map[string]float64{
		"weir_unpriced_total listed": 1, "weir_unpriced_total other": 2,
		"weir_requests_without_cost_total listed": 2, "weir_requests_without_cost_total other": 2,
		"weir_cost_dollars_total grown": 3, "weir_unpriced_total grown": 0,
		"weir_answer_cache_total answered": 1, "weir_answer_cache_total routed": 1,
		"weir_savings_dollars_total answered": 2, "weir_savings_dollars_total routed": 3,
	} {
		if got[series] != want {
			t.Errorf("%s is %v, want %v", series, got[series], want)
		}
	}
	if n, ok := got["weir_unpriced_total made-up-1"]; ok {
		t.Errorf("a made-up name has a series of its own: %v", n)
	}
}
