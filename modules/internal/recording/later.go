package recording

import (
	"context"
	"net/http"
	"strings"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/catalog"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// Later reads what the answer to a GET tells of calls that were made before.
type Later interface {
	// Write reads the next plain bytes. It does not keep p.
	Write(p []byte)
	// Close says that the body ended, and whether all of it has passed.
	Close(whole bool)
}

// Later returns the reader of the answer to a GET, nil if the answer tells nothing of earlier
// calls. The header is that of the answer.
func (x *Exchange) Later(header http.Header, maxBody int64) Later {
	if of, ok := observe.ResultsOf(x.Record.Path); ok {
		return x.Results(of, maxBody)
	}
	switch d, id, ok := observe.Polled(x.Record.Provider, x.Record.Path); {
	case !ok:
		return nil
	case d == plugins.Batches:
		return &batchPoll{x: x, id: id}
	default:
		return &responsePoll{x, id, observe.New(d, x.Record.Provider, header)}
	}
}

// responsePoll reads the plain bytes of an answer to a client that asks what has become of a
// response in the background: the call that made it was answered before the model had. The
// record of that call gets the usage, once.
type responsePoll struct {
	x        *Exchange
	id       string // of the response, by its provider
	observer plugins.Observer
}

// Write implements Later.
func (p *responsePoll) Write(b []byte) { p.observer.Write(b) }

// Close implements Later.
func (p *responsePoll) Close(bool) {
	p.observer.Close()
	defer p.observer.Free()
	x, seen := p.x, p.observer.Info()
	if seen.Usage == (plugins.Usage{}) || seen.ResponseID != p.id {
		return
	}
	made, err := x.recorder.Response(context.WithoutCancel(x.ctx), x.Record.Org, p.id)
	if err != nil || made.Provider != x.Record.Provider || made.Usage != (plugins.Usage{}) {
		return
	}
	if err := x.site.amend(x.recorder, made, seen); err != nil {
		x.site.Logger.Error("the usage of a call is lost", zap.Stringer("id", made.ID), zap.String("store", x.site.Store), zap.Error(err))
	}
}

// maxBatchObject bounds what a provider tells of a batch, in bytes.
const maxBatchObject = 1 << 20

// batchPoll reads the plain bytes of an answer to a client that asks what has become of a batch.
type batchPoll struct {
	x    *Exchange
	id   string
	body []byte
}

// Write implements Later.
func (p *batchPoll) Write(b []byte) {
	if len(p.body)+len(b) <= maxBatchObject {
		p.body = append(p.body, b...)
	}
}

// Close implements Later.
func (p *batchPoll) Close(bool) { p.x.SeeBatch(p.id, p.body) }

// SeeBatch reads what a provider tells of a batch. If the batch has ended and its usage is
// known, so does what is set aside for it.
func (x *Exchange) SeeBatch(id string, body []byte) {
	state, ok := observe.ParseBatch(body)
	if !ok || !state.Ended || state.ID != id {
		return
	}
	made := x.batch(id)
	if made == nil {
		return
	}
	used := bound.Free()
	switch {
	case state.Usage != (plugins.Usage{}):
		used.Usage = state.Usage
		used.Cost = bound.ParseBatch(made.Batch).Cost(x.site.App.Catalog(), made.Provider, state.Usage, catalog.Conditions{
			At: made.CreatedAt.Time(), Geography: made.InferenceGeo,
		})
	case state.Succeeded != plugins.Known(0):
		return // the results tell
	}
	x.endBatch(made, used)
}

// batch returns the record of a batch of the organisation at the provider, nil if there is none.
func (x *Exchange) batch(id string) *storage.Record {
	made, err := x.recorder.Response(context.WithoutCancel(x.ctx), x.Record.Org, id)
	if err != nil || id == "" || made.Dialect != plugins.Batches || made.Provider != x.Record.Provider || made.GatewayNode == "" {
		return nil
	}
	return made
}

// Uploaded returns what the calls in a file can use at most that was uploaded to an address,
// if that is known.
func (x *Exchange) Uploaded(file, baseURL string) (b bound.Batch) {
	if made := x.batch(file); made != nil && strings.HasPrefix(made.TargetURL, baseURL) {
		b.Parts = bound.ParseBatch(made.Batch).Parts
	}
	return b
}

// endBatch ends what is set aside for a batch, of which so much is spent.
func (x *Exchange) endBatch(made *storage.Record, used bound.Used) {
	reserved := bound.ParseBatch(made.Batch).Reservation
	if reserved == uuid.Nil {
		return
	}
	if err := x.site.App.Money().EndBatch(context.WithoutCancel(x.ctx), made.Org, reserved, used); err != nil {
		x.site.Logger.Error("what is set aside for a batch has not ended", zap.Stringer("id", made.ID), zap.Error(err))
	}
}
