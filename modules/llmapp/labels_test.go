package llmapp

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// seriesOfCalls returns how many series the metrics of calls have.
func seriesOfCalls(t *testing.T) (n int) {
	t.Helper()
	registry := prometheus.NewRegistry()
	if err := registerMetrics(registry); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		n += len(f.GetMetric())
	}
	return n
}

// Callers and spans choose names of models and providers. However many they choose, the
// number of series stays that of the names in the catalogue and the configuration.
func TestChosenNamesMakeNoSeries(t *testing.T) {
	metrics := newMetrics(catalog.Default(), nil)
	observe := func(i int) {
		for _, r := range []storage.Record{
			{Provider: "openai", Model: fmt.Sprintf("gpt-4o-mini@%d", i)},
			{Provider: "openai", Model: fmt.Sprintf("ft:gpt-4o-mini-2024-07-18:acme::%d", i)},
			{Provider: "openai", Model: fmt.Sprintf("region%d/gpt-4o-mini", i)},
			{Provider: "echo", Model: fmt.Sprintf("echo-%d", i)},
			{Provider: fmt.Sprintf("vendor-%d", i), Model: "gpt-4o-mini"},
		} {
			r.Usage = plugins.Usage{Input: plugins.Known(1), Output: plugins.Known(1)}
			metrics.Observe(&r)
		}
	}
	observe(0)
	before := seriesOfCalls(t)
	for i := range 500 {
		observe(i + 1)
	}
	if after := seriesOfCalls(t); after != before {
		t.Errorf("%d series have become %d", before, after)
	}
}
