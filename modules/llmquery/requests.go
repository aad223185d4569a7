package llmquery

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// The limits of request queries.
const (
	defaultRequests = 10
	maxLimit        = 1000
)

// legacyGroups are the filter groups that /v1/request/query applies. The bulk endpoint applies
// only the first.
var legacyGroups = []storage.Group{
	storage.RequestResponse, storage.RequestGroup, storage.ResponseGroup,
	storage.FeedbackGroup, storage.PropertiesGroup, storage.ValuesGroup,
}

func queryRequestsBulk(c *call) error { return c.requests(legacyGroups[:1]) }

func queryRequests(c *call) error { return c.requests(legacyGroups) }

// readRequestQuery reads the body of a query for requests. The limit of the query is one more than the
// client's, so that the answer can say whether there are more.
func (c *call) readRequestQuery(groups []storage.Group) (q *storage.RequestQuery, s shape, err error) {
	b, err := c.body()
	if err != nil {
		return nil, s, err
	}
	if b.json("filter") == nil {
		b.fail("filter", `is required; "all" matches every request`)
	}
	filter, err := c.readFilter(b.json("filter"), groups...)
	if err != nil {
		b.refuse(err)
	}
	sort, random, err := c.order(b.json("sort"))
	if err != nil {
		b.refuse(err)
	}
	q = &storage.RequestQuery{
		Org:        c.org,
		Filter:     filter,
		Cached:     b.boolean("isCached"),
		Scored:     b.boolean("isScored"),
		Experiment: b.boolean("isPartOfExperiment"),
		Sort:       sort,
		Random:     random,
		Offset:     b.integer("offset", 0, math.MaxInt),
		Limit:      b.integer("limit", defaultRequests, maxLimit) + 1,
	}
	b.readCursor(q)
	if q.After != nil && random {
		b.fail("after", "a random order has no place to go on from")
	}
	s = shape{inputs: b.flag("includeInputs"), content: b.includeContent()}
	if b.flag("includePreview") {
		s.preview = filter
	}
	return q, s, b.finish()
}

// requests answers one page of requests. groups are the filter groups that it applies.
func (c *call) requests(groups []storage.Group) error {
	q, s, err := c.readRequestQuery(groups)
	if err != nil {
		return err
	}
	if q.After != nil && q.After.Values == nil {
		if err := c.completeCursor(q); err != nil {
			return err
		}
	}
	var records []*storage.Record
	if c.applies(q.Filter, groups) {
		if records, err = c.journal.Backend().Requests(c.ctx, q); err != nil {
			return err
		}
	}
	records, next := cutPage(records, q.Limit-1, func(r **storage.Record) *storage.Cursor[storage.SortKey] {
		after := q.Cursor(*r, nil)
		if q.SortsByContent() {
			after.Values = nil
		}
		return after
	})

	a := newAnswer(c, s)
	defer a.close()
	a.append(`{"data":[`)
	if err := a.expect(records...); err != nil {
		return a.abandon(err)
	}
	for i, r := range records {
		if i > 0 {
			a.append(",")
		}
		if err := a.record(r); err != nil {
			return a.abandon(err)
		}
	}
	a.append(`],"error":null,"next":`)
	if next != nil && !q.Random {
		a.append(`"` + *next + `"}`)
	} else {
		a.append("null}")
	}
	a.flush()
	return nil
}

// page answers one page of a stream. A stream takes its turn among the queries for
// each page, so that a long one keeps nobody waiting.
func (c *call) page(q *storage.RequestQuery) (records []*storage.Record, err error) {
	err = c.inTurn(func(ctx context.Context) error {
		records, err = c.journal.Backend().Requests(ctx, q)
		return err
	})
	return records, err
}

// inTurn makes one query of a stream, when its turn has come.
func (c *call) inTurn(ask func(context.Context) error) error {
	for {
		over, ok := c.app.Turns().Queries.Take(c.ctx, c.key)
		if ok {
			defer over()
		}
		if c.ctx.Err() != nil {
			return context.Cause(c.ctx)
		}
		if !ok {
			continue // it waited
		}
		ctx, cancel := context.WithTimeout(c.ctx, time.Duration(c.Timeout))
		defer cancel()
		return ask(ctx)
	}
}

// completeCursor reads the bodies of the record that a cursor names, if the query sorts by
// them.
func (c *call) completeCursor(q *storage.RequestQuery) error {
	id, err := uuid.FromBytes([]byte(q.After.Tie[0]))
	if err != nil {
		return badRequest("after: %v", storage.ErrCursor)
	}
	r, err := c.journal.Request(c.ctx, storage.RecordKey{Org: c.org, ID: id})
	if errors.Is(err, storage.ErrNotFound) {
		return badRequest("after: the request of this cursor is gone: begin again without it")
	}
	if err != nil {
		return err
	}
	contents := c.contents(storage.WholeContent)
	defer contents.Close()
	content, err := contents.Content(c.ctx, r)
	if err != nil {
		return err
	}
	q.After = q.Cursor(r, content)
	return nil
}

// applies reports whether the endpoint applies the groups of all leaves of a filter. Otherwise
// the filter finds nothing, and the caller is warned: clients rely on an empty page in place of
// an error.
func (c *call) applies(f storage.Filter, groups []storage.Group) bool {
	for group := range storage.Groups(f) {
		if !slices.Contains(groups, group) {
			c.w.Header().Add("Service-Warnings", fmt.Sprintf(
				"filter: %s does not apply leaves of %s, so nothing matches; it applies those of %s", c.r.URL.Path, group, groups))
			return false
		}
	}
	return true
}

func getRequest(c *call) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	a := newAnswer(c, shape{content: true, inputs: true, charges: c.app.Catalog()})
	defer a.close()
	if err := a.expect(r); err != nil {
		return err
	}
	a.append(`{"data":`)
	if err := a.record(r); err != nil {
		return a.abandon(err)
	}
	a.append(`,"error":null}`)
	a.flush()
	return nil
}

// charges returns the parts of a record's cost, nil if the prices of the catalogue do not add up
// to the cost.
func charges(c *catalog.Catalog, r *storage.Record) []catalog.Charge {
	conditions := catalog.Conditions{At: time.UnixMilli(int64(r.CreatedAt)), Tier: r.ServiceTier, Geography: r.InferenceGeo}
	for _, model := range []string{r.Model, r.ResponseModel, r.RequestModel} {
		if charges, sum := c.Charges(r.Provider, model, r.Usage, conditions); sum == r.Cost.Or(r.ListCost) && c.Version() == r.PriceVersion {
			return charges
		}
	}
	return nil
}

// request returns the record of the id in the path, also if only the journal has it yet.
func (c *call) request() (*storage.Record, error) {
	id, err := uuid.Parse(c.r.PathValue("id"))
	if err != nil {
		return nil, storage.ErrNotFound
	}
	r, err := c.journal.Request(c.ctx, storage.RecordKey{Org: c.org, ID: id})
	if errors.Is(err, context.DeadlineExceeded) { // one record takes no time, unless the store has none
		err = &plugins.Error{Status: http.StatusServiceUnavailable, Message: "the store is busy; try again later", RetryAfter: retryAfter}
	}
	return r, err
}
