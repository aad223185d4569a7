package llmapp

import (
	"errors"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/modules/internal/export"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/providers"
	"github.com/weirhq/weir/modules/internal/stores"
	"github.com/weirhq/weir/modules/internal/websocket"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// The collectors live as long as the process, so that counters survive reloads;
// each configuration registers them with its own registry.
var (
	requests = metric.NewCounters("weir_requests_total", "Recorded calls, by how they ended.",
		"provider", "model", "end_state", "status")
	tokens = metric.NewCounters("weir_tokens_total", "Tokens that providers reported; cache_read, cache_write and reasoning are parts of input and output.",
		"provider", "model", "type")
	cost     = metric.NewCounters("weir_cost_dollars_total", "Cost of calls with a known price, in US dollars.", "provider", "model")
	costless = metric.NewCounters("weir_requests_without_cost_total", "Calls whose cost is unknown.", "provider", "model")
	unpriced = metric.NewCounters("weir_unpriced_total", "Calls whose usage is known and whose cost is not: the catalogue lacks the model, or the price of what was used.", "provider", "model")
	answers  = metric.NewCounters("weir_answer_cache_total", "Calls that asked Weir's cache, by result: hit or miss.", "provider", "model", "result")
	savings  = metric.NewCounters("weir_savings_dollars_total", "US dollars that Weir has saved, by its cache of answers (answer_cache), or by staying where a provider's cache had the conversation (routing).",
		"provider", "model", "by")
	duration = metric.NewHistograms("weir_request_duration_seconds", "Time from a request to the end of its response.",
		[]float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640}, "provider", "model")
	firstToken = metric.NewHistograms("weir_time_to_first_token_seconds", "Time from a request to the first content of its stream.",
		[]float64{.05, .1, .2, .4, .8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2}, "provider", "model")
)

func registerMetrics(registry *prometheus.Registry) error {
	if err := RegisterMetrics(registry, money.Collectors...); err != nil {
		return err
	}
	return RegisterMetrics(registry, requests, tokens, cost, costless, unpriced, answers, savings, duration, firstToken, stores.Collector{}, suppressedLines, buildInfo(), export.Spans, admission.Refusals, websocket.Unreadable)
}

// RegisterMetrics registers collectors, which may live as long as the process and be
// registered already.
func RegisterMetrics(registry *prometheus.Registry, collectors ...prometheus.Collector) error {
	for _, c := range collectors {
		var registered prometheus.AlreadyRegisteredError
		if err := registry.Register(c); err != nil && !errors.As(err, &registered) {
			return err
		}
	}
	return nil
}

// call is the series of one provider and model, looked up once.
type call struct {
	input, output, cacheRead, cacheWrite, reasoning prometheus.Counter
	cost, costless, unpriced                        prometheus.Counter
	duration, firstToken                            prometheus.Observer
}

// callKey names the series of a call. Callers and spans choose providers and models, so
// both are labels of closed sets.
type callKey struct{ provider, model metric.Label }

var calls sync.Map // callKey -> *call

func callOf(key callKey) *call {
	if c, ok := calls.Load(key); ok {
		return c.(*call)
	}
	count := func(kind metric.Label) prometheus.Counter { return tokens.With(key.provider, key.model, kind) }
	c, _ := calls.LoadOrStore(key, &call{
		input:      count(metric.Constant("input")),
		output:     count(metric.Constant("output")),
		cacheRead:  count(metric.Constant("cache_read")),
		cacheWrite: count(metric.Constant("cache_write")),
		reasoning:  count(metric.Constant("reasoning")),
		cost:       cost.With(key.provider, key.model),
		costless:   costless.With(key.provider, key.model),
		unpriced:   unpriced.With(key.provider, key.model),
		duration:   duration.With(key.provider, key.model),
		firstToken: firstToken.With(key.provider, key.model),
	})
	return c.(*call)
}

// Metrics counts the calls of a configuration, under the names of providers and models that it
// and the catalogue have.
type Metrics struct {
	catalog           *catalog.Catalog
	providers, models metric.Set
	listed            metric.Set // the catalogue's ids of models
}

func newMetrics(prices *catalog.Catalog, accounts []*providers.Account) *Metrics {
	m := &Metrics{prices, make(metric.Set), make(metric.Set), make(metric.Set)}
	m.providers.Add(NoProvider)
	m.providers.Add(plugins.Vendors()...)
	for model := range prices.Models() {
		m.providers.Add(model.Provider)
		m.listed.Add(model.ID)
	}
	for _, account := range accounts {
		m.providers.Add(account.Provider)
		m.models.Add(account.Models...)
	}
	return m
}

// NoProvider is the name of a provider that has no name of its own.
const NoProvider = "custom"

// NameProvider makes the provider that a handler is configured with a name of metrics.
// It is called while the configuration is provisioned.
func (m *Metrics) NameProvider(name string) {
	if name != "" {
		m.providers.Add(name)
	}
}

// labels returns the names of a call in metrics. A model has the catalogue's id, however
// the call spells it.
func (m *Metrics) labels(r *storage.Record) callKey {
	key := callKey{m.providers.Of(r.Provider), m.models.Of(r.Model)}
	if model, ok := m.catalog.Lookup(r.Provider, r.Model); ok {
		key.model = m.listed.Of(model.ID)
	}
	return key
}

// Observe counts a record.
func (m *Metrics) Observe(r *storage.Record) {
	key := m.labels(r)
	c := callOf(key)
	requests.With(key.provider, key.model, endStates.Of(r.EndState.String()), statusClass(r.Status)).Inc()
	c.observeUsage(r, new(storage.Record))
	if !r.Cost.Valid {
		c.costless.Inc()
	}
	if r.AnswerCache != "" {
		answers.With(key.provider, key.model, cacheResults.Of(r.AnswerCache)).Inc()
	}
	if r.SavedCost.Valid {
		savings.With(key.provider, key.model, byAnswerCache).Add(r.SavedCost.Float())
	}
	if r.RoutingSavings.Valid {
		savings.With(key.provider, key.model, byRouting).Add(r.RoutingSavings.Float())
	}
	if r.Latency.Valid {
		c.duration.Observe(float64(r.Latency.N) / 1e3)
	}
	if r.TimeToFirstToken.Valid {
		c.firstToken.Observe(float64(r.TimeToFirstToken.N) / 1e3)
	}
}

// ObserveUsage counts what a record has got since it was counted: its usage and its cost.
func (m *Metrics) ObserveUsage(r, counted *storage.Record) {
	callOf(m.labels(r)).observeUsage(r, counted)
}

func (c *call) observeUsage(r, counted *storage.Record) {
	for _, t := range []struct {
		now, before plugins.Count
		prometheus.Counter
	}{
		{r.Usage.Input, counted.Usage.Input, c.input},
		{r.Usage.Output, counted.Usage.Output, c.output},
		{r.Usage.CacheRead, counted.Usage.CacheRead, c.cacheRead},
		{r.Usage.CacheWrite, counted.Usage.CacheWrite, c.cacheWrite},
		{r.Usage.Reasoning, counted.Usage.Reasoning, c.reasoning},
	} {
		t.Add(float64(max(t.now.N-t.before.N, 0)))
	}
	switch {
	case r.Cost.Valid:
		added := plugins.KnownCost(max(r.Cost.N-counted.Cost.N, 0))
		c.cost.Add(added.Float())
	case r.Usage != (plugins.Usage{}) && counted.Usage == (plugins.Usage{}) && !r.Subscription:
		c.unpriced.Inc()
	}
}

var (
	cacheResults             = metric.SetOf(storage.CacheHit, storage.CacheMiss)
	byAnswerCache, byRouting = metric.Constant("answer_cache"), metric.Constant("routing")
)

var endStates = metric.SetOf("complete", "client_aborted", "upstream_aborted", "failed", "interrupted")

var statusClasses = [...]metric.Label{
	metric.Constant("1xx"), metric.Constant("2xx"), metric.Constant("3xx"), metric.Constant("4xx"), metric.Constant("5xx"),
}

func statusClass(status plugins.Count) metric.Label {
	if !status.Valid || status.N < 100 || status.N > 599 {
		return metric.Constant("none")
	}
	if status.N == http.StatusTooManyRequests { // the one refusal that alerts look for
		return metric.Constant("429")
	}
	return statusClasses[status.N/100-1]
}
