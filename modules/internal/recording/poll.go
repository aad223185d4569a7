package recording

import (
	"context"
	"net/http"

	"go.uber.org/zap"

	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
)

// Poll reads the plain bytes of an answer to a client that asks what has become of a
// response in the background: the call that made it was answered before the model had. The
// record of that call gets the usage, once.
type Poll struct {
	x        *Exchange
	id       string // of the response, by its provider
	observer plugins.Observer
}

// Poll begins to read the answer with that header, of which x is the exchange.
func (x *Exchange) Poll(d plugins.Dialect, response string, header http.Header) *Poll {
	return &Poll{x, response, observe.New(d, x.Record.Provider, header)}
}

// Write implements capture.Reader.
func (p *Poll) Write(b []byte) { p.observer.Write(b) }

// Close says that the body ended.
func (p *Poll) Close(bool) {
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
