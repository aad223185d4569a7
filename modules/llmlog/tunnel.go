package llmlog

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/websocket"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// unreadableError is the error type of the records of a WebSocket that could not be
// read to its end.
const unreadableError = "websocket_unreadable"

// tunnel reads the WebSocket that an exchange became, and makes a record of each
// response in it. The bytes pass whatever it makes of them.
type tunnel struct {
	client, server direction
	closer         atomic.Pointer[direction] // that closed the WebSocket first
	responses
}

// direction is one of the two. Its lock is held by whoever passes its bytes on, and
// nobody else waits for it before the end.
type direction struct {
	mu      sync.Mutex
	reader  *websocket.Reader
	t       *tunnel
	stopped bool
	failed  bool
}

// follow reads the tunnel that the answer with that header begins, if its dialect
// says how.
func (x *exchange) follow(header http.Header) {
	// HTTP/2 and HTTP/3 name the protocol of a CONNECT (RFC 8441, section 5), which
	// quic-go has in Proto.
	upgraded := strings.EqualFold(header.Get("Upgrade"), "websocket") || x.r.Header.Get(":protocol") == "websocket" || x.r.Proto == "websocket"
	how := observe.TwoWayOf(x.Record.Dialect)
	if !upgraded || how == nil {
		return
	}
	t := new(tunnel)
	t.responses = responses{x: x, how: how, requestModel: x.r.URL.Query().Get("model")}
	t.client.t, t.server.t = t, t
	x.tunnel = t
	var err error
	if t.client.reader, t.server.reader, err = websocket.Open(header, t.fromClient, t.fromServer); err != nil {
		t.client.stopped, t.server.stopped = true, true
		t.server.fail(err)
		return
	}
	x.writer.Follow(&t.client, &t.server)
	x.body.Look(func(body *capture.Tap, _ int64) { body.Open("", &t.client) }) // of a CONNECT
}

// Write implements capture.Reader.
func (d *direction) Write(p []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	d.reader.Write(p)
	if d.reader.Closed() {
		d.t.closer.CompareAndSwap(nil, d)
	} else if err := d.reader.Err(); err != nil {
		d.stop()
		d.fail(err)
		if d == &d.t.server { // nothing tells any more how its responses end
			d.t.abort(storage.UpstreamAborted, unreadableError)
		}
	}
}

func (d *direction) fail(err error) {
	d.failed = true
	websocket.Unreadable.Inc()
	d.t.x.h.site.Logger.Warn("a WebSocket cannot be read: its bytes pass, and calls in it have no record",
		zap.Stringer("id", d.t.x.Record.ID), zap.Error(err))
}

func (d *direction) stop() {
	if !d.stopped {
		d.stopped = true
		d.reader.Stop()
	}
}

// close ends the reading, and the responses that have not ended.
func (t *tunnel) close() {
	for _, d := range []*direction{&t.client, &t.server} {
		d.mu.Lock()
		d.stop()
		d.mu.Unlock()
	}
	end, x := storage.UpstreamAborted, t.x
	if closer := t.closer.Load(); closer == &t.client || closer == nil && (x.ctx.Err() != nil || x.writer.ClientLeft()) {
		end = storage.ClientAborted
	}
	t.abort(end, "")
	t.since.Free()
	if t.client.failed || t.server.failed {
		x.Record.ErrorType = unreadableError
	}
}
