package llmquery

import (
	"time"

	"github.com/weirhq/weir/storage"
)

// The limits of metrics and facets.
const (
	defaultMetricGroups = 10
	maxMetricGroups     = 100
	maxFacets           = 12
)

// queryMetrics answers POST /v1/metrics/query.
func queryMetrics(c *call) error {
	return ask(c, func(b *body) *storage.MetricsQuery {
		q := &storage.MetricsQuery{
			Org:     c.org,
			Filter:  b.filter("filter", storage.RequestResponse),
			Window:  b.unixWindow("startTimeUnixMs", "endTimeUnixMs", time.Millisecond),
			Zone:    b.zone("timezoneDifference"),
			By:      parsed(b, "groupBy", storage.ParseDimension, storage.Dimension{}),
			Bucket:  parsed(b, "bucket", storage.ParseBucketWidth, storage.BucketAuto),
			Compare: b.flag("compare"),
			Limit:   b.integer("limit", defaultMetricGroups, maxMetricGroups),
		}
		if q.Limit == 0 {
			b.fail("limit", "at least 1 is expected")
		}
		return q
	})
}

// queryFacets answers POST /v1/facets/query.
func queryFacets(c *call) error {
	return ask(c, func(b *body) *storage.FacetQuery {
		q := &storage.FacetQuery{
			Org:    c.org,
			Filter: b.filter("filter", storage.RequestResponse),
			Window: b.unixWindow("startTimeUnixMs", "endTimeUnixMs", time.Millisecond),
		}
		for _, name := range b.texts("fields", maxFacets) {
			field, err := storage.ParseDimension(name)
			if err != nil {
				b.fail("fields", "%v", err)
			}
			q.Fields = append(q.Fields, field)
		}
		return q
	})
}

// queryScores answers POST /v1/dashboard/scores/query.
func queryScores(c *call) error {
	return ask(c, func(b *body) *storage.ScoreQuery {
		times := b.object("timeFilter")
		return &storage.ScoreQuery{
			Org:       c.org,
			Filter:    b.filter("userFilter", storage.RequestResponse),
			Window:    storage.Window{From: parsed(times, "start", storage.ParseTimestamp, storage.Always.From), To: parsed(times, "end", storage.ParseTimestamp, storage.Always.To)},
			Zone:      b.zone("timeZoneDifference"),
			Increment: parsed(b, "dbIncrement", storage.ParseIncrement, storage.ByDay),
		}
	})
}
