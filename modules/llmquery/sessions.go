package llmquery

import (
	"math"
	"time"

	"github.com/weirhq/weir/storage"
)

// querySessions answers POST /v1/session/query.
func querySessions(c *call) error {
	return ask(c, c.journal.Backend().Sessions, func(b *body) *storage.SessionQuery {
		b.zone("timezoneDifference") // of no effect: sessions have no days
		return &storage.SessionQuery{
			Org:        c.org,
			Filter:     c.filter(b, "filter", storage.SessionsView, storage.RequestResponse),
			Window:     b.unixWindow("startTimeUnixMs", "endTimeUnixMs", time.Millisecond),
			Search:     b.text("search"),
			NameEquals: b.text("nameEquals"),
			Offset:     b.integer("offset", 0, math.MaxInt),
			Limit:      b.integer("limit", defaultGroups, maxLimit),
		}
	})
}

// querySessionMetrics answers POST /v1/session/metrics/query.
func querySessionMetrics(c *call) error {
	return ask(c, c.journal.Backend().SessionMetrics, func(b *body) *storage.SessionMetricsQuery {
		return &storage.SessionMetricsQuery{
			Org:          c.org,
			Filter:       c.filter(b, "filter", storage.SessionsView, storage.RequestResponse),
			Window:       b.unixWindow("startTimeUnixMs", "endTimeUnixMs", time.Millisecond),
			Zone:         b.zone("timezoneDifference"),
			NameContains: b.text("nameContains"),
			Series:       b.series(),
		}
	})
}
