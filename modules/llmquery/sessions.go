package llmquery

import (
	"math"
	"time"

	"github.com/weirhq/weir/storage"
)

// querySessions answers POST /v1/session/query.
func querySessions(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	filter, applies, err := c.filter(b, "filter", storage.SessionsView, storage.RequestResponse)
	if err != nil {
		return err
	}
	b.zone("timezoneDifference") // of no effect: sessions have no days
	q := &storage.SessionQuery{
		Org:        c.org,
		Filter:     filter,
		Window:     b.unixWindow("startTimeUnixMs", "endTimeUnixMs", time.Millisecond),
		Search:     b.text("search"),
		NameEquals: b.text("nameEquals"),
		Offset:     b.integer("offset", 0, math.MaxInt),
		Limit:      b.integer("limit", defaultGroups, maxLimit),
	}
	if *b.err != nil {
		return *b.err
	}
	if !applies {
		q.Window = nothing
	}
	sessions, err := c.journal.Backend().Sessions(c.ctx, q)
	if err != nil {
		return err
	}
	return c.data(sessions)
}

// querySessionMetrics answers POST /v1/session/metrics/query.
func querySessionMetrics(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	filter, applies, err := c.filter(b, "filter", storage.SessionsView, storage.RequestResponse)
	if err != nil {
		return err
	}
	q := &storage.SessionMetricsQuery{
		Org:          c.org,
		Filter:       filter,
		Window:       b.unixWindow("startTimeUnixMs", "endTimeUnixMs", time.Millisecond),
		Zone:         b.zone("timezoneDifference"),
		NameContains: b.text("nameContains"),
		Series:       b.series(),
	}
	if *b.err != nil {
		return *b.err
	}
	if !applies {
		q.Window = nothing
	}
	metrics, err := c.journal.Backend().SessionMetrics(c.ctx, q)
	if err != nil {
		return err
	}
	return c.data(metrics)
}
