package llmlog

import (
	"net/http"

	"github.com/weirhq/weir/modules/internal/demand"
	"github.com/weirhq/weir/plugins"
)

// countKept counts the cost of an answer that was broken off, by the length of what is kept of
// it. Some providers state until the end only what they began with. The cost is unknown if the
// length does not tell the cost, or if the answer is not kept.
func (x *exchange) countKept() {
	r := &x.Record
	used := r.Usage
	if x.observer == nil || r.Status.N != http.StatusOK || used.ReportedCost.Valid || used.Output.Valid && x.phase() != plugins.Running {
		return
	}
	kept := x.Kept.Content(r)
	written, ok := demand.Written(r.Dialect, kept.Response)
	request, _ := plugins.ParseObject(kept.Request.Data)
	if !ok || r.ResponseTruncated || !used.Input.Valid && (r.RequestOmitted || r.RequestTruncated) ||
		!demand.Countable(r.Dialect, request, used.Input) {
		x.Uncounted = true
		return
	}
	used.Input = used.Input.Or(plugins.Known(demand.Likely.Text(r.RequestBytes)))
	used.Output = plugins.Known(max(used.Output.N, demand.Likely.Text(written)))
	x.Count(used)
}
