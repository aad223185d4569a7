package llmadmin

import (
	"fmt"
	"maps"
	"slices"

	"github.com/caddyserver/caddy/v2"
)

// lookAtSpans says which spans came over OpenTelemetry and made no record, a finding for each
// library that sent any. Spans that speak of no model are not worth a line.
func lookAtSpans(ctx caddy.Context) (all []Finding) {
	families, err := ctx.GetMetricsRegistry().Gather()
	if err != nil {
		return []Finding{{Level: Warning, About: "metrics", Found: err.Error()}}
	}
	counts := make(map[string]map[string]int64)
	for _, family := range families {
		if family.GetName() != "weir_otlp_ignored_spans_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := make(map[string]string)
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if counts[labels["library"]] == nil {
				counts[labels["library"]] = make(map[string]int64)
			}
			counts[labels["library"]][labels["reason"]] = int64(m.GetCounter().GetValue())
		}
	}
	for _, library := range slices.Sorted(maps.Keys(counts)) {
		n := counts[library]
		if n["aggregate"]+n["same_call"]+n["unknown"] == 0 {
			continue
		}
		f := Finding{Level: OK, About: "OpenTelemetry of " + library}
		f.Found = fmt.Sprintf("%d aggregate spans, %d of calls that another span reports, %d unknown", n["aggregate"], n["same_call"], n["unknown"])
		if n["unknown"] > 0 {
			f.Level, f.Fix = Warning, "unknown spans name a model or tokens, but not as any convention does: see docs/opentelemetry.md"
		}
		all = append(all, f)
	}
	return all
}
