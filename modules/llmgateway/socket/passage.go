package socket

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/tunnel"
	"github.com/weirhq/weir/plugins"
)

// Passage is a WebSocket whose bytes pass as they are between a client and a provider.
type Passage struct {
	// Conn is the client's connection, Upstream the provider's.
	Conn     net.Conn
	Upstream io.ReadWriteCloser
	// Tunnel reads what passes.
	Tunnel *tunnel.Tunnel
	// Reads: the gateway has to know what passes, because credits or a budget bound the
	// calls, or because others use the account.
	Reads bool
	// Unloaded is closed when the configuration is another.
	Unloaded <-chan struct{}
	// Refused returns why the caller may not go on, nil if the caller may. It is asked every
	// access.RecheckInterval.
	Refused func(context.Context) *plugins.Error

	ended   atomic.Int32                  // who ended it first
	reason  atomic.Pointer[plugins.Error] // why the gateway did
	running atomic.Int32                  // responses that have not ended
	leaving atomic.Bool                   // the gateway ends it when none is running
}

const (
	theClient int32 = iota + 1
	theProvider
	theGateway
)

// closeWriteTimeout bounds the wait for a client that takes no bytes.
const closeWriteTimeout = 5 * time.Second

// lingerTime bounds the wait for a client to close its side, once it has the last frames, and for the last frames
// of a provider that takes no more.
const lingerTime = time.Second

// Why the gateway closes a WebSocket without an error of the client or the provider.
var (
	shuttingDown = plugins.Error{Status: http.StatusServiceUnavailable, Type: "server_error", Message: "the gateway is shutting down"}
	reconfigured = plugins.Error{Status: http.StatusServiceUnavailable, Type: "server_error", Message: "the configuration has changed: connect again"}
)

// Passed is what became of a WebSocket.
type Passed struct {
	// Received is how many bytes came from the client, Sent how many from the provider.
	Received, Sent int64
	// Reason is why the gateway has ended the WebSocket, nil unless the client or the provider
	// is to blame.
	Reason *plugins.Error
}

// Pass passes the bytes of both directions until the WebSocket, or ctx, has ended.
func (p *Passage) Pass(ctx context.Context, fromClient io.Reader) Passed {
	done := make(chan struct{})
	var others sync.WaitGroup
	var received int64
	others.Go(func() { p.watch(ctx, done) })
	others.Go(func() {
		var refused bool
		if received, refused = p.forward(p.Upstream, fromClient, &p.Tunnel.Client); refused {
			p.ended.CompareAndSwap(0, theProvider)
			time.AfterFunc(lingerTime, func() { p.close(theProvider) }) // its last frames may not be read yet
		} else {
			p.close(theClient)
		}
		_, _ = io.Copy(io.Discard, fromClient) // or what is unread would reset the connection, and the last frames with it
	})
	sent, refused := p.forward(p.Conn, p.Upstream, &p.Tunnel.Server)
	if refused {
		p.close(theClient)
	}
	p.close(theProvider)
	close(done)
	reason := p.reason.Load()
	if between := p.Tunnel.Server.Stop(); reason != nil && between {
		_, _ = p.Conn.Write(closeFrames(reason))
	}
	if half, ok := p.Conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // a client that is gone
	}
	_ = p.Conn.SetReadDeadline(time.Now().Add(lingerTime)) // likewise
	others.Wait()
	p.Conn.Close()
	p.Tunnel.Close(p.ended.Load() == theClient)
	passed := Passed{Received: received, Sent: sent}
	if reason != nil && reason.Status != http.StatusServiceUnavailable {
		passed.Reason = reason
	}
	return passed
}

// forward passes the bytes of one direction on, and returns how many, and whether to took
// no more. The message of a client for which the gateway ends the WebSocket does not pass
// whole.
func (p *Passage) forward(to io.Writer, from io.Reader, d *tunnel.Direction) (passed int64, refused bool) {
	buf := make([]byte, 32<<10)
	// The head of a frame has two bytes or more. net/http may have read the first alone, and
	// no one could say whether its frame can be read.
	for least := 2; ; least = 1 {
		n, err := io.ReadAtLeast(from, buf, least)
		d.Write(buf[:n])
		if p.Reads && d.Unreadable() {
			p.Stop(plugins.Invalid("", "The frames of the WebSocket cannot be read, and so neither what its calls may cost nor what they name."))
			return passed, false
		}
		if d == &p.Tunnel.Client && p.reason.Load() != nil {
			return passed, false
		}
		written, failure := to.Write(buf[:n])
		passed += int64(written)
		if err != nil || failure != nil || p.reason.Load() != nil {
			return passed, failure != nil
		}
	}
}

// close ends both directions.
func (p *Passage) close(by int32) {
	p.ended.CompareAndSwap(0, by)
	_ = p.Conn.SetWriteDeadline(time.Now().Add(closeWriteTimeout)) // one that fails is closed
	p.Upstream.Close()
}

// Stop lets the gateway end the WebSocket.
func (p *Passage) Stop(e *plugins.Error) {
	p.reason.CompareAndSwap(nil, e)
	p.close(theGateway)
}

// Begin counts a response that begins, until End.
func (p *Passage) Begin() { p.running.Add(1) }

// End counts a response that has ended, after which a new configuration may end the WebSocket.
func (p *Passage) End() {
	if p.running.Add(-1) == 0 && p.leaving.Load() {
		p.Stop(&reconfigured)
	}
}

// watch ends the WebSocket with the process, and between two responses with the
// configuration: keys and providers may be others now. It also ends the WebSocket of a caller
// who may not go on.
func (p *Passage) watch(ctx context.Context, done <-chan struct{}) {
	unloaded := p.Unloaded
	ask := time.NewTicker(access.RecheckInterval)
	defer ask.Stop()
	for {
		select {
		case <-done:
			return
		case <-ctx.Done():
			p.Stop(&shuttingDown)
			return
		case <-ask.C:
			if refused := p.Refused(ctx); refused != nil {
				p.Stop(refused)
				return
			}
		case <-unloaded:
			unloaded = nil
			if p.leaving.Store(true); p.running.Load() == 0 {
				p.Stop(&reconfigured)
			}
		}
	}
}

// closeFrames returns the last frames for a client: the error, and why the WebSocket is closed.
func closeFrames(e *plugins.Error) (frames []byte) {
	code := ws.StatusGoingAway
	if e.Status != http.StatusServiceUnavailable {
		code = ws.StatusPolicyViolation
		event := append(e.AppendObject([]byte(`{"type":"error","error":`)), '}')
		frames = ws.MustCompileFrame(ws.NewTextFrame(event))
	}
	reason := strings.ToValidUTF8(e.Message[:min(len(e.Message), ws.MaxControlFramePayloadSize-2)], "")
	return append(frames, ws.MustCompileFrame(ws.NewCloseFrame(ws.NewCloseFrameBody(code, reason)))...)
}
