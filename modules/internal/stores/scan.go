package stores

import (
	"context"
	"net/http"
	"time"

	"github.com/weirhq/weir/internal/lowpriority"
	"github.com/weirhq/weir/internal/metric"
	"github.com/weirhq/weir/modules/internal/admission"
	"github.com/weirhq/weir/plugins"
)

// scans lets few pages be read at a time for trials of budgets, choosing what to erase and the like,
// which read until they have all records of an organisation: organisations take turns, page by page.
var scans = admission.NewTurns(metric.Constant("scans"), admission.Limits{
	Running: max(1, lowpriority.Processors()/2), RunningPerKey: 1, Waiting: 512, WaitingPerKey: 16, Wait: time.Minute,
})

// scan reads a page of the records of an organisation in its turn. The error is a 429 if too much waits.
func scan(ctx context.Context, org string, read func() error) (err error) {
	over, ok := scans.Take(ctx, org)
	if !ok && ctx.Err() == nil {
		return &plugins.Error{Status: http.StatusTooManyRequests, RetryAfter: 5 * time.Second, Message: "too much is reading all records of this organisation, or of all; ask for less at a time"}
	}
	if !ok {
		return ctx.Err()
	}
	defer over()
	lowpriority.Run(func() { err = read() })
	return err
}
