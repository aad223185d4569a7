package llmquery

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/storage"
)

// getRequest answers GET /v1/request/{id}.
func getRequest(c *call) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	a := newAnswer(c)
	defer a.close()
	a.raw(`{"data":`)
	if err := a.record(r, shape{content: true, inputs: true, charges: c.app.Catalog()}); err != nil {
		return a.abandon(err)
	}
	a.raw(`,"error":null}`)
	a.flush()
	return nil
}

// charges are the parts of a record's cost, nil where the catalogue does not come to
// this cost any more, or never has.
func charges(c *catalog.Catalog, r *storage.Record) []catalog.Charge {
	conditions := catalog.Conditions{At: time.UnixMilli(int64(r.CreatedAt)), Tier: r.ServiceTier, Geography: r.InferenceGeo}
	for _, model := range []string{r.Model, r.ResponseModel, r.RequestModel} {
		if charges, sum := c.Charges(r.Provider, model, r.Usage, conditions); sum == r.Cost.Or(r.ListCost) && c.Version() == r.PriceVersion {
			return charges
		}
	}
	return nil
}

// request is the record of the id in the path, also when it is still on its way
// from the journal.
func (c *call) request() (*storage.Record, error) {
	id, err := uuid.Parse(c.r.PathValue("id"))
	if err != nil {
		return nil, storage.ErrNotFound
	}
	r, err := c.journal.Request(c.ctx, c.org, id)
	if errors.Is(err, context.DeadlineExceeded) { // one record takes no time, unless the store has none
		err = &problem{status: http.StatusServiceUnavailable, message: "the store is busy; try again later", header: http.Header{"Retry-After": {"5"}}}
	}
	return r, err
}
