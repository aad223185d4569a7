package llmquery

import (
	"math"
	"net/http"
	"time"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/storage"
)

// querySessions answers POST /v1/session/query.
func querySessions(c *call) error {
	q, sessions, err := query(c, func(b *body) *storage.SessionQuery {
		b.zone("timezoneDifference") // of no effect: sessions have no days
		search, _ := b.text("search")
		sort, err := storage.ParseSessionSort(b.raw("sort"))
		if err != nil {
			b.reject("%v", err)
		}
		q := &storage.SessionQuery{
			Org:     c.org,
			Filter:  b.filter("filter", storage.SessionsView, storage.RequestResponse),
			Window:  b.unixWindow("startTimeUnixMs", "endTimeUnixMs", time.Millisecond),
			Derived: b.flag("derived"),
			Search:  search,
			Sort:    sort,
			Offset:  b.integer("offset", 0, math.MaxInt),
			Limit:   b.integer("limit", defaultGroups, maxLimit),
		}
		if name, ok := b.text("nameEquals"); ok {
			q.NameEquals = &name
		}
		b.after(q)
		return q
	})
	if err != nil {
		return err
	}
	return apierror.WriteJSON(c.w, http.StatusOK, pageEnvelope{apierror.Envelope{Data: sessions}, next(sessions, q.Limit, q.Cursor)})
}

// querySessionMetrics answers POST /v1/session/metrics/query.
func querySessionMetrics(c *call) error {
	return ask(c, func(b *body) *storage.SessionMetricsQuery {
		name, _ := b.text("nameContains")
		return &storage.SessionMetricsQuery{
			Org:          c.org,
			Filter:       b.filter("filter", storage.SessionsView, storage.RequestResponse),
			Window:       b.unixWindow("startTimeUnixMs", "endTimeUnixMs", time.Millisecond),
			Zone:         b.zone("timezoneDifference"),
			Derived:      b.flag("derived"),
			NameContains: name,
			Series:       b.series(),
		}
	})
}
