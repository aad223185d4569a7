package recording

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Earlier finds the records of earlier calls of a caller: of responses and batches that a provider has
// given to it.
type Earlier struct {
	site     *Site
	recorder Recorder // nil in a dry run, which only memory can tell
	ctx      context.Context
	caller   *storage.Record
}

// Earlier returns what is known of the calls before x.
func (x *Exchange) Earlier() *Earlier { return &Earlier{x.site, x.recorder, x.ctx, &x.Record} }

// Answered reports whether a record proves that a provider at an address has given the
// caller's organisation a response of that id. A record that was reported or imported proves
// nothing, because its id is the caller's word.
func (e *Earlier) Answered(id, baseURL string) bool { return e.answered(id, baseURL) != nil }

// MadeBatch reports whether the organisation has made a batch at an address, whose calls stood in
// the request.
func (e *Earlier) MadeBatch(id, baseURL string) bool {
	batch := e.answered(id, baseURL)
	if batch == nil || batch.Dialect != plugins.Batches {
		return false
	}
	b, ok := observe.ParseInlineBatch(batch.Path)
	return ok && b.Creates
}

// answered returns the record of a response or a batch of the organisation at an address, nil if
// there is none.
func (e *Earlier) answered(id, baseURL string) *storage.Record {
	if e.recorder == nil {
		return nil
	}
	r, err := e.recorder.Response(e.ctx, e.caller.Org, id)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		e.site.Logger.Error("a response cannot be looked up, and is refused", zap.String("response", id), zap.Error(err))
	}
	if err != nil || id == "" || r.GatewayNode == "" || !strings.HasPrefix(r.TargetURL, baseURL) {
		return nil
	}
	return r
}

// SeeBatch reads the batch object of a provider. If the batch has ended and its usage is known,
// SeeBatch settles its reservation.
func (e *Earlier) SeeBatch(id string, body []byte) {
	state, ok := observe.ParseBatch(body)
	if !ok || !state.Ended || state.ID != id {
		return
	}
	batch := e.batch(id)
	if batch == nil {
		return
	}
	used := bound.Free()
	switch {
	case state.Usage != (plugins.Usage{}):
		used.Usage = state.Usage
		used.Cost = bound.ParseBatch(batch.Batch).Cost(e.site.App.Catalog(), batch.Provider, state.Usage, catalog.Conditions{
			At: batch.CreatedAt.Time(), Geography: batch.InferenceGeo,
		})
	case state.Succeeded != plugins.Known(0):
		return // the results tell
	default:
		defer e.markRecorded(batch)
	}
	e.endBatch(batch, used)
}

// batchRecorded is the finish reason of a batch whose calls are recorded.
const batchRecorded = "ended"

// markRecorded notes on the record of a batch that its calls are recorded, once.
func (e *Earlier) markRecorded(batch *storage.Record) {
	defer lockResponse(batch.Org, batch.ResponseID)()
	r := e.batch(batch.ResponseID)
	if r == nil || r.Finish != "" {
		return
	}
	seen := plugins.ResponseInfo{
		Model: r.ResponseModel, ResponseID: r.ResponseID, Finish: batchRecorded, ErrorType: r.ErrorType, ServiceTier: r.ServiceTier, Usage: r.Usage,
	}
	if err := e.site.amend(e.recorder, r, &seen); err != nil {
		e.site.Logger.Error("a batch whose calls are recorded is asked for again", zap.Stringer("id", r.ID), zap.Error(err))
	}
}

// batch returns the record of a batch of the organisation at the provider, or nil if there is none.
func (e *Earlier) batch(id string) *storage.Record {
	found, err := e.recorder.Response(context.WithoutCancel(e.ctx), e.caller.Org, id)
	if err != nil || id == "" || found.Dialect != plugins.Batches || found.Provider != e.caller.Provider || found.GatewayNode == "" {
		return nil
	}
	return found
}

// Uploaded returns an upper bound on what the calls in an uploaded file can use. The bound is empty
// if the file is unknown, or was uploaded to another address than baseURL.
func (e *Earlier) Uploaded(file, baseURL string) (b bound.Batch) {
	if batch := e.batch(file); batch != nil && strings.HasPrefix(batch.TargetURL, baseURL) {
		b.Parts = bound.ParseBatch(batch.Batch).Parts
	}
	return b
}

// endBatch settles the reservation of a batch with what the batch has used.
func (e *Earlier) endBatch(batch *storage.Record, used bound.Used) {
	reserved := bound.ParseBatch(batch.Batch).Reservation
	if reserved == uuid.Nil {
		return
	}
	if err := e.site.App.Money().EndBatch(context.WithoutCancel(e.ctx), batch.Org, reserved, used); err != nil {
		e.site.Logger.Error("what is set aside for a batch has not ended", zap.Stringer("id", batch.ID), zap.Error(err))
	}
}
