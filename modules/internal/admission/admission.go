// Package admission bounds the resources that all calls together use, so that no caller
// takes what others need: calls beyond a bound wait for a while, and are then refused.
package admission

import "github.com/weirhq/weir/internal/metric"

// Refusals counts what was refused, by the limit that it met. It lives as long as
// the process, so that it survives reloads.
var Refusals = metric.NewCounters("weir_refusals_total", "Calls refused because they met a limit, by the limit.", "limit")
