package llmotlp

import "github.com/prometheus/client_golang/prometheus"

// spans lives as long as the process, so that it survives reloads.
var spans = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "weir_otlp_spans_total", Help: "Spans that came by OTLP, by what became of them.",
}, []string{"result"})

// The results of a span.
const (
	recorded  = "recorded"
	ignored   = "ignored"   // is no call of a model
	duplicate = "duplicate" // came before
	rejected  = "rejected"
)
