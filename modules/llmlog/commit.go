package llmlog

import (
	"cmp"
	"net/http"

	"github.com/google/uuid"

	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/llmapp"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// commit fills in what the traffic has told so far, and commits the record.
func (x *exchange) commit(end storage.EndState) {
	x.update()
	if x.request.upload != nil && end == storage.Complete && x.rec.Record.Status.N < http.StatusMultipleChoices {
		x.request.body.Look(func(*capture.Tap, int64) { x.rec.Record.Batch = x.request.upload.Batch().Text() })
	}
	x.rec.Commit(end)
}

// update fills in what the traffic has told so far.
func (x *exchange) update() {
	r := &x.rec.Record
	if status := x.writer.Status(); status != 0 {
		r.Status = plugins.Known(int64(status))
	}
	if x.writer.Tunnel() { // it has bytes, and no bodies
		r.Status = plugins.Known(http.StatusSwitchingProtocols) // for which the client's 200 stands over HTTP/2 and 3
		r.ResponseBytes = x.writer.Sent()
	}
	var (
		info    plugins.RequestInfo
		outline *observe.Outline
	)
	x.request.body.Look(func(t *capture.Tap, received int64) {
		info, outline = *x.request.reader.Request(), x.request.reader.Outline()
		r.RequestBytes = received + x.writer.Received()
		x.rec.Kept.Request(r, storage.Body{Data: t.Bytes()}, int64(x.h.MaxBody), t.Truncated())
		x.rec.Kept.Media(r, info.Media)
	})
	x.rec.Kept.Response(r, storage.Body{Data: x.answer.tap.Bytes()}, int64(x.h.MaxBody), x.answer.tap.Truncated())

	r.Dialect = cmp.Or(x.rec.Info().Dialect, r.Dialect)
	r.Provider = x.provider()
	r.RequestModel = info.Model
	control.ReadUser(r, info.User)
	x.rec.Join(outline, uuid.Nil)
	if r.RequestModel == "" {
		r.RequestModel = observe.PathModel(r.Dialect, r.Path)
	}
}

// provider is who answers: as configured, else by the host of the upstream. An
// unknown host is not the vendor whose dialect it speaks, and has other prices.
func (x *exchange) provider() string {
	if x.account != nil {
		return x.account.Provider
	}
	return cmp.Or(x.h.Provider, x.upstream, llmapp.NoProvider)
}

// vendor is who says what a path and an answer mean: by the host of the upstream, whatever the site calls the
// provider, else as configured.
func (x *exchange) vendor() string { return cmp.Or(x.upstream, x.rec.Record.Provider) }
