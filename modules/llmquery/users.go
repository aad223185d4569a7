package llmquery

import (
	"math"
	"time"

	"github.com/weirhq/weir/storage"
)

// defaultGroups is how many users or sessions a page has (decisions,
// "Envelope").
const defaultGroups = 50

// nothing is the window of an answer that a foreign filter group empties.
var nothing = storage.Window{From: 1}

// queryUsers answers POST /v1/user/metrics/query.
func queryUsers(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	filter, applies, err := c.filter(b, "filter", storage.UsersView, storage.RequestResponse)
	if err != nil {
		return err
	}
	sort, err := storage.ParseUserSort(b.raw("sort"))
	if err != nil {
		return err
	}
	q := &storage.UserQuery{
		Org:    c.org,
		Filter: filter,
		Window: b.unixWindow("startTimeUnixSeconds", "endTimeUnixSeconds", time.Second),
		Zone:   b.zone("timeZoneDifferenceMinutes"),
		Sort:   sort,
		Offset: b.integer("offset", 0, math.MaxInt),
		Limit:  b.integer("limit", defaultGroups, maxLimit),
	}
	if *b.err != nil {
		return *b.err
	}
	if !applies {
		q.Window = nothing
	}
	users, err := c.journal.Backend().Users(c.ctx, q)
	if err != nil {
		return err
	}
	return c.data(users)
}

// queryUserOverview answers POST /v1/user/metrics-overview/query.
func queryUserOverview(c *call) error {
	b, err := c.body()
	if err != nil {
		return err
	}
	filter, applies, err := c.filter(b, "filter", storage.UsersView, storage.RequestResponse)
	if err != nil {
		return err
	}
	q := &storage.UserOverviewQuery{
		Org:    c.org,
		Filter: filter,
		Window: b.unixWindow("startTimeUnixMs", "endTimeUnixMs", time.Millisecond),
		Zone:   b.zone("timezoneDifference"),
		Series: b.series(),
	}
	if *b.err != nil {
		return *b.err
	}
	if !applies {
		q.Window = nothing
	}
	overview, err := c.journal.Backend().UserOverview(c.ctx, q)
	if err != nil {
		return err
	}
	return c.data(overview)
}
