package llmquery

import (
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/storage"
)

// The limits of metrics and facets.
const (
	defaultMetricGroups = 10
	maxMetricGroups     = 100
	maxFacets           = 12
)

func queryMetrics(c *call) error {
	q, metrics, err := query(c, func(b *body) *storage.MetricsQuery {
		sort, err := storage.ParseGroupSort(b.json("sort"))
		if err != nil {
			b.reject("%v", err)
		}
		q := &storage.MetricsQuery{
			Org:     c.org,
			Filter:  b.filter("filter", storage.RequestResponse),
			Window:  b.window(),
			Zone:    b.zone("timezoneDifference"),
			By:      parsed(b, "groupBy", storage.ParseDimension, storage.Dimension{}),
			Bucket:  parsed(b, "bucket", storage.ParseBucketWidth, storage.BucketAuto),
			Compare: b.flag("compare"),
			Sort:    sort,
			Limit:   b.integer("limit", defaultMetricGroups, maxMetricGroups),
		}
		b.readCursor(q)
		switch {
		case q.Limit == 0:
			b.fail("limit", "at least 1 is expected")
		case q.After != nil && q.By == (storage.Dimension{}):
			b.fail("after", "pages are of groups: name what to group by in groupBy")
		}
		return q
	})
	if err != nil {
		return err
	}
	var next *string
	if more, err := q.More(c.ctx, c.journal.Backend(), metrics); err != nil {
		return err
	} else if more != nil {
		next = new(more.String())
	}
	return c.answer(pageEnvelope{apierror.Envelope{Data: metrics}, next})
}

func queryFacets(c *call) error {
	return ask(c, func(b *body) *storage.FacetQuery {
		q := &storage.FacetQuery{
			Org:    c.org,
			Filter: b.filter("filter", storage.RequestResponse),
			Window: b.window(),
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
