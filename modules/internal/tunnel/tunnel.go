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

	"github.com/gobwas/ws"
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

// ClosedError is the error type of a WebSocket, and of the responses that had not ended, if one side closed
// it with a code that tells of a failure (RFC 6455, section 7.4).
const ClosedError = "websocket_closed"

// Options are what the handler decides about a tunnel.
type Options struct {
	// MaxBody bounds the bytes that a record keeps of each side of a response.
	MaxBody int64
	// RequestModel is the model that the handshake asks for, "" if it names none.
	RequestModel string
	Logger       *zap.Logger

	// FromClient, if set, is called with each message from the client before its last
	// bytes pass. cut is true if the message lacks its end.
	FromClient func(message []byte, cut bool)
	// Begin, if set, is called when a response begins, before its request passes. If the server
	// begins a response that the client did not request, Begin is called before that event
	// passes. A refused response gets a record with the error, unless the server has begun it.
	// end is called before the last version of the record is appended.
	Begin func(*recording.Exchange) (end func(storage.EndState), refused *plugins.Error)
}

// Tunnel reads the WebSocket that an exchange became.
type Tunnel struct {
	// Client gets the bytes that come from the client, Server those from the server,
	// each by one goroutine and before the other side gets them.
	Client, Server Direction

	closer atomic.Pointer[Direction] // the direction that closed the WebSocket first
	responses
}

// Direction is one of the two directions of a tunnel. Its lock is held by the goroutine that
// passes its bytes on, and nobody else waits for the lock before the end.
type Direction struct {
	mu      sync.Mutex // guards reader, stopped and failed
	reader  *websocket.Reader
	t       *Tunnel
	stopped bool
	failed  bool
}

// Open returns the tunnel that the answer with this header begins, or nil if the dialect of the
// exchange has no responses in a WebSocket. The caller must call Close.
func Open(x *recording.Exchange, header http.Header, o Options) *Tunnel {
	twoWay := observe.TwoWayOf(x.Record.Dialect)
	if twoWay == nil {
		return nil
	}
	t := new(Tunnel)
	t.responses = responses{x: x, options: o, twoWay: twoWay, requestModel: o.RequestModel, model: x.TargetModel}
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
			d.t.abort(storage.UpstreamAborted, &plugins.Error{Type: UnreadableError, Message: "The frames of the WebSocket cannot be read."})
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

// Stop ends the reading. between is true if the bytes so far end with a complete message
// that does not close the direction, so that another message may follow.
func (d *Direction) Stop() (between bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
	if d.failed || d.reader.Closed() {
		return false
	}
	err := d.reader.Err()
	return err == nil || err == io.EOF //nolint:errorlint // a wrapped io.EOF comes from the middle of a message
}

// Close ends the reading, and the responses that have not ended. If no frame closed the
// WebSocket, clientLeft says whether the client ended the connection.
func (t *Tunnel) Close(clientLeft bool) {
	t.Client.Stop()
	t.Server.Stop()
	end, closer := storage.UpstreamAborted, t.closer.Load()
	if closer == &t.Client || closer == nil && clientLeft {
		end = storage.ClientAborted
	}
	failure := t.closeError(closer)
	t.abort(end, failure)
	t.input.Free()
	if failure != nil {
		t.x.Record.ErrorType, t.x.Refusal = failure.Type, failure
	}
	if t.Client.failed || t.Server.failed {
		t.x.Record.ErrorType = UnreadableError
	}
}

// closeError returns the failure that the code tells of with which a direction closed the WebSocket, nil for
// none.
func (t *Tunnel) closeError(closer *Direction) *plugins.Error {
	if closer == nil {
		return nil
	}
	code, reason := closer.reader.CloseReason()
	if code == 0 || code == int(ws.StatusNormalClosure) || code == int(ws.StatusGoingAway) {
		return nil
	}
	by := "provider"
	if closer == &t.Client {
		by = "client"
	}
	if reason != "" && !t.x.Record.RequestOmitted && !t.x.Record.ResponseOmitted { // it may quote the content
		reason = ": " + reason
	} else {
		reason = "."
	}
	e := plugins.Upstream("The %s closed the WebSocket with the code %d%s", by, code, reason)
	e.Type = ClosedError
	return e
}
