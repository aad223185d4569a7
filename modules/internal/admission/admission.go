// Package admission bounds the resources that all calls together use, so that no caller
// takes what others need: calls beyond a bound wait for a while, and are then refused.
package admission

import (
	"github.com/prometheus/client_golang/prometheus"
)

// Refusals counts what was refused, by the limit that it met. It lives as long as
// the process, so that it survives reloads.
var Refusals = prometheus.NewCounterVec(prometheus.CounterOpts{
	Name: "weir_refusals_total", Help: "Calls refused because they met a limit, by the limit.",
}, []string{"limit"})
