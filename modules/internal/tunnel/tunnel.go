// Package tunnel makes a record of each response in a WebSocket whose bytes pass
// through the proxy or the gateway. It reads the bytes and changes none.
//
// Its tests are tunnel_test.go of llmlog and realtime_test.go of llmgateway.
package tunnel

import (
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/websocket"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// UnreadableError is the error type of the records of a WebSocket that could not be
// read to its end.
const UnreadableError = "websocket_unreadable"

// Options are what the handler decides about a tunnel.
type Options struct {
	// MaxBody is how many bytes are kept at most of each side of a response.
	MaxBody int64
	// RequestModel is the model that the handshake asks for, "" if it names none.
	RequestModel string
	Logger       *zap.Logger

	// FromClient, if set, is called with each message of the client before its last
	// bytes pass. cut says that this is only the beginning of the message.
	FromClient func(message []byte, cut bool)
	// Begin, if set, is called when a response begins: before its request has passed,
	// or before the event with which the server begins one unasked has. A response
	// that is refused has a record with the error, unless the server has begun it.
	// End is called before the last version of the record is appended.
	Begin func(*recording.Exchange) (end func(storage.EndState), refused *plugins.Error)
}

// Tunnel reads the WebSocket that an exchange became.
type Tunnel struct {
	// Client gets the bytes that come from the client, Server those from the server,
	// each by one goroutine and before the other side gets them.
	Client, Server Direction

	closer atomic.Pointer[Direction] // that closed the WebSocket first
	responses
}

// Direction is one of the two. Its lock is held by whoever passes its bytes on, and
// nobody else waits for it before the end.
type Direction struct {
	mu      sync.Mutex
	reader  *websocket.Reader
	t       *Tunnel
	stopped bool
	failed  bool
}

// Open returns the tunnel that the answer with that header begins, nil if the dialect
// of the exchange has no responses in one. Close must follow.
func Open(x *recording.Exchange, header http.Header, o Options) *Tunnel {
	how := observe.TwoWayOf(x.Record.Dialect)
	if how == nil {
		return nil
	}
	t := new(Tunnel)
	t.responses = responses{x: x, options: o, how: how, requestModel: o.RequestModel, model: x.TargetModel}
	t.Client.t, t.Server.t = t, t
	var err error
	if t.Client.reader, t.Server.reader, err = websocket.Open(header, t.fromClient, t.fromServer); err != nil {
		t.Client.stopped, t.Client.failed, t.Server.stopped = true, true, true
		t.Server.fail(err)
	}
	return t
}

// Write implements capture.Reader.
func (d *Direction) Write(p []byte) {
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
		if d == &d.t.Server { // nothing reports any more how its responses end
			d.t.abort(storage.UpstreamAborted, UnreadableError)
		}
	}
}

func (d *Direction) fail(err error) {
	d.failed = true
	websocket.Unreadable.Inc()
	d.t.options.Logger.Warn("a WebSocket cannot be read: its bytes pass, and calls in it have no record",
		zap.Stringer("id", d.t.x.Record.ID), zap.Error(err))
}

func (d *Direction) stop() {
	if !d.stopped {
		d.stopped = true
		d.reader.Stop()
	}
}

// Unreadable reports whether frames of the direction could not be read.
func (d *Direction) Unreadable() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// Stop ends the reading. between is true if the bytes so far end with a whole message
// that does not close the direction, so that another one may follow.
func (d *Direction) Stop() (between bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
	if d.failed || d.reader.Closed() {
		return false
	}
	err := d.reader.Err()
	return err == nil || err == io.EOF //nolint:errorlint // one that is wrapped is of the middle of a message
}

// Close ends the reading, and the responses that have not ended. clientLeft says who
// has ended the connection if no frame does.
func (t *Tunnel) Close(clientLeft bool) {
	t.Client.Stop()
	t.Server.Stop()
	end := storage.UpstreamAborted
	if closer := t.closer.Load(); closer == &t.Client || closer == nil && clientLeft {
		end = storage.ClientAborted
	}
	t.abort(end, "")
	t.since.Free()
	if t.Client.failed || t.Server.failed {
		t.x.Record.ErrorType = UnreadableError
	}
}
