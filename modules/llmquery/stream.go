package llmquery

import (
	"context"
	"time"

	"github.com/weirhq/weir/storage"
)

// page answers one page of a stream. A stream takes its turn among the queries for
// each page, so that a long one keeps nobody waiting.
func (c *call) page(q *storage.RequestQuery) ([]*storage.Record, error) {
	for {
		over, ok := c.app.QueryTurns().Take(c.ctx, c.key)
		if ok {
			defer over()
		}
		if c.ctx.Err() != nil {
			return nil, context.Cause(c.ctx)
		}
		if !ok {
			continue // it waited
		}
		ctx, cancel := context.WithTimeout(c.ctx, time.Duration(c.Timeout))
		defer cancel()
		return c.journal.Backend().Requests(ctx, q)
	}
}
