package llmquery

import (
	"math"
	"time"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/storage"
)

// defaultGroups is how many users or sessions a page has.
const defaultGroups = 50

func queryUsers(c *call) error {
	q, users, err := query(c, func(b *body) *storage.UserQuery {
		sort, err := storage.ParseUserSort(b.json("sort"))
		if err != nil {
			b.reject("%v", err)
		}
		q := &storage.UserQuery{
			Org:    c.org,
			Filter: b.filter("filter", storage.UsersView, storage.RequestResponse),
			Window: b.unixWindow("startTimeUnixSeconds", "endTimeUnixSeconds", time.Second),
			Zone:   b.zone("timeZoneDifferenceMinutes"),
			Sort:   sort,
			Offset: b.integer("offset", 0, math.MaxInt),
			Limit:  b.integer("limit", defaultGroups, maxLimit) + 1,
		}
		b.readCursor(q)
		return q
	})
	if err != nil {
		return err
	}
	var next *string
	users.Users, next = cutPage(users.Users, q.Limit-1, q.Cursor)
	return c.answer(pageEnvelope{apierror.Envelope{Data: users}, next})
}

func queryUserOverview(c *call) error {
	return ask(c, func(b *body) *storage.UserOverviewQuery {
		return &storage.UserOverviewQuery{
			Org:    c.org,
			Filter: b.filter("filter", storage.UsersView, storage.RequestResponse),
			Window: b.window(),
			Zone:   b.zone("timezoneDifference"),
			Series: b.series(),
		}
	})
}
