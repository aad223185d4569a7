package llmquery

import (
	"errors"
	"math"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/storage"
)

func querySessions(c *call) error {
	q, sessions, err := query(c, func(b *body) *storage.SessionQuery {
		b.zone("timezoneDifference") // of no effect: sessions have no days
		search, _ := b.text("search")
		sort, err := storage.ParseSessionSort(b.json("sort"))
		if err != nil {
			b.reject("%v", err)
		}
		q := &storage.SessionQuery{
			Org:     c.org,
			Filter:  b.filter("filter", storage.SessionsView, storage.RequestResponse),
			Window:  b.window(),
			Derived: b.flag("derived"),
			Search:  search,
			Sort:    sort,
			Offset:  b.integer("offset", 0, math.MaxInt),
			Limit:   b.integer("limit", defaultGroups, maxLimit) + 1,
		}
		if name, ok := b.text("nameEquals"); ok {
			q.NameEquals = &name
		}
		b.readCursor(q)
		return q
	})
	if err != nil {
		return err
	}
	page, next := cutPage(sessions, q.Limit-1, q.Cursor)
	return c.answer(pageEnvelope{apierror.Envelope{Data: page}, next})
}

func querySessionMetrics(c *call) error {
	return ask(c, func(b *body) *storage.SessionMetricsQuery {
		name, _ := b.text("nameContains")
		return &storage.SessionMetricsQuery{
			Org:          c.org,
			Filter:       b.filter("filter", storage.SessionsView, storage.RequestResponse),
			Window:       b.window(),
			Zone:         b.zone("timezoneDifference"),
			Derived:      b.flag("derived"),
			NameContains: name,
			Series:       b.series(),
		}
	})
}

func querySessionTree(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	id, _ := b.text("sessionId")
	if id == "" {
		b.fail("sessionId", "the id of a session is expected, or of the first request of a tree")
	}
	q := &storage.SessionTreeQuery{Org: c.org, Session: id, By: parsed(b, "by", storage.ParseTreeNodes, storage.ByConversation)}
	if err := b.finish(); err != nil {
		return err
	}
	nodes, err := q.Answer(c.ctx, c.journal.Backend())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return errNoSession
	case errors.Is(err, storage.ErrTreeTooLarge):
		return badRequest("sessionId: the session has more than %d requests, too many for a tree; /v1/metrics/query adds them up", storage.MaxTreeRequests)
	case err != nil:
		return err
	}
	return c.answer(apierror.Envelope{Data: nodes})
}
