package llmgateway

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/tunnel"
	"github.com/weirhq/weir/modules/llmgateway/routing"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// keyProtocol begins the subprotocol that is the key of browsers, which can send no
// header with a handshake. accountProtocols begin those that choose whose budget is spent.
const keyProtocol = "openai-insecure-api-key."

var accountProtocols = []string{"openai-organization.", "openai-project."}

// serveRealtime passes a WebSocket to a provider that speaks OpenAI's Realtime
// (https://platform.openai.com/docs/guides/realtime-websocket).
func (h *Handler) serveRealtime(w http.ResponseWriter, r *http.Request, at *match) error {
	if key := takeProtocol(r.Header, keyProtocol); key != "" && r.Header.Get("Authorization") == "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	return h.serveCall(w, r, at)
}

// takeProtocol takes the subprotocols that begin with prefix out of a handshake, and
// returns what follows it in the last of them.
func takeProtocol(header http.Header, prefix string) (value string) {
	const field = "Sec-Websocket-Protocol"
	var left []string
	for protocol := range strings.SplitSeq(strings.Join(header[field], ","), ",") {
		protocol = strings.TrimSpace(protocol)
		if after, ok := strings.CutPrefix(protocol, prefix); ok {
			value = after
		} else if protocol != "" {
			left = append(left, protocol)
		}
	}
	header.Del(field)
	if left != nil {
		header.Set(field, strings.Join(left, ", "))
	}
	return value
}

// handshakeModel returns the model that a handshake asks for.
func (c *call) handshakeModel() (string, error) {
	query := c.r.URL.Query()
	for name := range query {
		if name != "model" { // Azure takes a deployment, and OpenAI a call that others have begun
			return "", plugins.Unsupported(name, "Unsupported parameter: '%.64s'. A WebSocket takes 'model' alone.", name)
		}
	}
	if c.controls.Cost {
		c.controls.Warnings = append(c.controls.Warnings, "Service-Cost: left out, the responses of a WebSocket have records of their own")
	}
	model := query.Get("model")
	if model == "" {
		return "", translate.Missing("model")
	}
	return model, nil
}

// passHandshake makes req the client's handshake, which the provider answers.
func (a *attempt) passHandshake(req *http.Request) {
	query := req.URL.Query() // has Azure's version
	query.Set("model", a.target.Model)
	req.URL.RawQuery = query.Encode()
	for _, name := range []string{"Connection", "Upgrade", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Extensions", "Sec-Websocket-Protocol"} {
		if values := a.call.r.Header[name]; values != nil {
			req.Header[name] = values
		}
	}
	if a.call.shares(a.target.Account) {
		for _, prefix := range accountProtocols {
			takeProtocol(req.Header, prefix)
		}
	}
}

// realtime is a WebSocket whose bytes pass as they are between a client and a provider.
// Each response in it is recorded, and paid for, by itself.
type realtime struct {
	*attempt // its record is that of the WebSocket
	tunnel   *tunnel.Tunnel
	conn     net.Conn // the client's
	upstream io.ReadWriteCloser

	ended   atomic.Int32                  // who ended it first
	reason  atomic.Pointer[plugins.Error] // why the gateway did
	running atomic.Int32                  // responses that have not ended
	leaving atomic.Bool                   // the gateway ends it when none is running
	spent   atomic.Bool                   // a response was paid from what was set aside for the handshake
}

const (
	theClient int32 = iota + 1
	theProvider
	theGateway
)

// closeWriteTimeout bounds the wait for a client that takes no bytes.
const closeWriteTimeout = 5 * time.Second

// Why the gateway closes a WebSocket without an error of the client or the provider.
var (
	shuttingDown = plugins.Error{Status: http.StatusServiceUnavailable, Type: "server_error", Message: "the gateway is shutting down"}
	reconfigured = plugins.Error{Status: http.StatusServiceUnavailable, Type: "server_error", Message: "the configuration has changed: connect again"}
)

// passSocket passes the WebSocket that the provider has opened.
func (a *attempt) passSocket(resp *http.Response) (routing.Outcome, *plugins.Error) {
	upstream, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || !strings.EqualFold(resp.Header.Get("Upgrade"), "websocket") {
		return a.fail(storage.Complete, plugins.Upstream("The provider has opened no WebSocket."), routing.Failover)
	}
	header := a.client.w.Header()
	for _, name := range []string{"Connection", "Upgrade", "Sec-WebSocket-Accept", "Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol"} {
		if values := resp.Header.Values(name); values != nil {
			header[name] = values // as RFC 6455 spells it, because there are clients who do not ignore case
		}
	}
	a.setHeaders(resp.Header)
	a.client.w.WriteHeader(http.StatusSwitchingProtocols)
	end := storage.Complete
	conn, buffered, err := http.NewResponseController(a.client.w).Hijack()
	if err != nil {
		a.call.h.site.Logger.Error("a WebSocket cannot be opened", zap.Stringer("id", a.x.Record.ID), zap.Error(err))
		end = storage.Failed
	} else {
		s := &realtime{attempt: a, conn: conn, upstream: upstream}
		a.x.RequestOf(&a.call.exchange)
		a.x.Pay = nil
		s.tunnel = tunnel.Open(a.x, resp.Header, tunnel.Options{
			MaxBody: int64(a.call.h.MaxBody), RequestModel: a.x.Record.RequestModel, Logger: a.call.h.site.Logger,
			FromClient: s.fromClient, Begin: s.begin,
		})
		// At the connection's end, buffered cancels the context of the request, as the end of
		// the process does: only what it has read already is taken from it.
		s.pass(io.MultiReader(io.LimitReader(buffered, int64(buffered.Reader.Buffered())), conn))
	}
	a.release()
	a.commit(end)
	a.x.End(end)
	return routing.Answered, nil
}

// pass passes the bytes of both directions until the WebSocket has ended.
func (s *realtime) pass(fromClient io.Reader) {
	done := make(chan struct{})
	var others sync.WaitGroup
	var received int64
	others.Go(func() { s.watch(done) })
	others.Go(func() {
		var refused bool
		if received, refused = s.forward(s.upstream, fromClient, &s.tunnel.Client); refused {
			s.close(theProvider)
		}
		s.close(theClient)
	})
	sent, refused := s.forward(s.conn, s.upstream, &s.tunnel.Server)
	if refused {
		s.close(theClient)
	}
	s.close(theProvider)
	close(done)
	reason := s.reason.Load()
	if between := s.tunnel.Server.Stop(); reason != nil && between {
		_, _ = s.conn.Write(closeFrames(reason))
	}
	s.conn.Close()
	others.Wait()
	s.tunnel.Close(s.ended.Load() == theClient)
	s.x.Record.RequestBytes, s.x.Record.ResponseBytes = received, sent
	if reason != nil && reason.Status != http.StatusServiceUnavailable {
		s.x.Record.ErrorType = reason.Type
	}
}

// forward passes the bytes of one direction on, and returns how many, and whether to took
// no more. The message of a client for which the gateway ends the WebSocket does not pass
// whole.
func (s *realtime) forward(to io.Writer, from io.Reader, d *tunnel.Direction) (passed int64, refused bool) {
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		d.Write(buf[:n])
		if s.ticket.Bounded() && d.Unreadable() {
			s.stop(plugins.Invalid("", "The frames of the WebSocket cannot be read, so that neither credits nor a budget can bound its calls."))
			return passed, false
		}
		if d == &s.tunnel.Client && s.reason.Load() != nil {
			return passed, false
		}
		written, failure := to.Write(buf[:n])
		passed += int64(written)
		if err != nil || failure != nil || s.reason.Load() != nil {
			return passed, failure != nil
		}
	}
}

// close ends both directions.
func (s *realtime) close(by int32) {
	s.ended.CompareAndSwap(0, by)
	_ = s.conn.SetWriteDeadline(time.Now().Add(closeWriteTimeout)) // one that fails is closed
	s.upstream.Close()
}

// stop lets the gateway end the WebSocket.
func (s *realtime) stop(e *plugins.Error) {
	s.reason.CompareAndSwap(nil, e)
	s.close(theGateway)
}

// watch ends the WebSocket with the process, and between two responses with the
// configuration: keys and providers may be others now.
func (s *realtime) watch(done <-chan struct{}) {
	unloaded := s.call.h.unloaded
	for {
		select {
		case <-done:
			return
		case <-s.call.ctx.Done():
			s.stop(&shuttingDown)
			return
		case <-unloaded:
			unloaded = nil
			if s.leaving.Store(true); s.running.Load() == 0 {
				s.stop(&reconfigured)
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

// fromClient ends a WebSocket that asks for what an account keeps that others share.
func (s *realtime) fromClient(message []byte) {
	if !s.call.shares(s.target.Account) {
		return
	}
	gjson.ParseBytes(message).ForEach(func(name, of gjson.Result) bool {
		of.ForEach(func(key, prompt gjson.Result) bool { // a field that stands twice may be read twice
			if (name.Str == "session" || name.Str == "response") && key.Str == "prompt" && prompt.IsObject() {
				s.stop(plugins.Unsupported("prompt", "'prompt' names what %s keeps: the account is shared with others.", s.target.Account.Label))
			}
			return true
		})
		return true
	})
}

// begin sets aside what a response may cost. Where the credits are insufficient, it is paid
// from what was set aside for the handshake, once, and is the last one.
func (s *realtime) begin(x *recording.Exchange) (end func(storage.EndState), refused *plugins.Error) {
	paid := &attempt{call: s.call, target: s.target, x: x, within: true}
	err := paid.admit()
	if err != nil {
		if !s.spent.CompareAndSwap(false, true) {
			s.stop(asError(err))
			return nil, asError(err)
		}
		paid.ticket, x.Pay = s.ticket, paid.charge
	}
	s.running.Add(1)
	return func(end storage.EndState) {
		x.Commit(end)
		if info := x.Answer.Info(); info.ResponseID != "" || info.Usage != (plugins.Usage{}) {
			paid.settle(end)
		}
		paid.release()
		switch running := s.running.Add(-1); {
		case err != nil:
			s.stop(asError(err))
		case running == 0 && s.leaving.Load():
			s.stop(&reconfigured)
		}
	}, nil
}
