package llmgateway

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/tidwall/gjson"
	"go.uber.org/zap"

	"github.com/weirhq/weir/modules/internal/access"
	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/money"
	"github.com/weirhq/weir/modules/internal/money/bound"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/modules/internal/routing"
	"github.com/weirhq/weir/modules/internal/tunnel"
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/modules/llmgateway/socket"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// keyProtocol begins the subprotocol that is the key of browsers, which can send no
// header with a handshake. accountProtocols begin the
// subprotocols that choose whose budget is spent.
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
// returns what follows the prefix in the last of these subprotocols.
func takeProtocol(header http.Header, prefix string) (value string) {
	const field = "Sec-Websocket-Protocol"
	var others []string
	for protocol := range strings.SplitSeq(strings.Join(header[field], ","), ",") {
		protocol = strings.TrimSpace(protocol)
		if after, ok := strings.CutPrefix(protocol, prefix); ok {
			value = after
		} else if protocol != "" {
			others = append(others, protocol)
		}
	}
	header.Del(field)
	if others != nil {
		header.Set(field, strings.Join(others, ", "))
	}
	return value
}

func (c *call) handshakeModel() (string, error) {
	if refused := c.h.site.App.Maskers().CheckUnread(&c.exchange.Record, "The messages of a WebSocket"); refused != nil {
		return "", refused
	}
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

// webSocket is the lane of Realtime.
type webSocket struct{ endpoint }

// Request implements lane: it is the client's handshake, which the provider answers.
func (s *webSocket) Request() (*http.Request, error) {
	a := s.a
	req, err := a.endpoint(a.call.route.path)
	if err != nil {
		return nil, err
	}
	s.passRequestHeaders(req)
	query := req.URL.Query() // has Azure's version
	query.Set("model", a.target.Model)
	req.URL.RawQuery = query.Encode()
	passFields(req.Header, a.call.r.Header,
		"Connection", "Upgrade", "Sec-Websocket-Key", "Sec-Websocket-Version", "Sec-Websocket-Protocol") // no extension: a compressed message could tell the key
	if a.shares() {
		for _, prefix := range accountProtocols {
			takeProtocol(req.Header, prefix)
		}
	}
	return req, nil
}

// Bound implements bounder. A response of Realtime reads the conversation.
func (*webSocket) Bound(of *bound.Call) {
	of.Fixed = func() plugins.Usage {
		input := plugins.Known(of.Model.InputLimit())
		output := plugins.Known(min(of.Model.OutputLimit(), realtimeOutput))
		return plugins.Usage{Input: input, InputAudio: input, InputImage: input, Output: output}
	}
}

// serveResponses makes the calls that come over a WebSocket of Responses.
func (h *Handler) serveResponses(w http.ResponseWriter, r *http.Request, at *match) error {
	opened := request{h: h, w: w, r: r.Clone(r.Context()), ctx: r.Context(), dialect: at.dialect} // each call needs the headers, too
	var caller storage.Record
	if e := opened.admit(&caller); e != nil {
		return apierror.Write(w, at.dialect, e)
	}
	if opened.controls.DryRun {
		return apierror.Write(w, at.dialect, plugins.Invalid("Service-Dry-Run", "A WebSocket has answers of models alone: ask by POST where a call would go."))
	}
	socket.ServeResponses(w, r, socket.Options{
		Intake: opened.intake(maxRequest), Unloaded: h.unloaded, Omits: opened.controls.OmitHeader != "",
		Store:           func() (*history.Store, error) { return h.responses.Store(&caller) },
		OpenCompactions: func(body []byte) ([]byte, error) { return h.openCompactions(caller.Org, body) },
		Call: func(w http.ResponseWriter, r *http.Request) error {
			return h.serveCall(w, r, &match{servedRoute: byPath[at.path].methods[http.MethodPost]})
		},
	})
	return nil
}

// realtime is a WebSocket of Realtime. Each response in it is recorded, and paid for, by
// itself.
type realtime struct {
	*socket.Passage
	a     *attempt     // its record is the WebSocket's
	bill  *money.Bill  // of the socket
	hold  func() error // sets aside the socket's part, at the first response
	spent atomic.Bool  // a response was paid from the socket's part
}

// Answer implements lane.
func (s *webSocket) Answer(resp *http.Response) (routing.Outcome, *plugins.Error) {
	a := s.a
	upstream, ok := resp.Body.(io.ReadWriteCloser)
	if !ok || !strings.EqualFold(resp.Header.Get("Upgrade"), "websocket") || resp.Header.Get("Sec-Websocket-Extensions") != "" {
		return a.fail(storage.UpstreamAborted, plugins.Upstream("The provider has opened no WebSocket."), routing.Failover)
	}
	header := a.client.w.Header()
	for _, name := range []string{"Connection", "Upgrade", "Sec-WebSocket-Accept", "Sec-WebSocket-Protocol"} {
		if values := resp.Header.Values(name); values != nil {
			header[name] = values // as RFC 6455 spells it, because there are clients who do not ignore case
		}
	}
	a.client.setHeaders(resp.Header)
	a.client.w.WriteHeader(http.StatusSwitchingProtocols)
	bill := a.x.Bill
	bill.NoteCharges(&a.x.Record)
	a.x.Bill = nil // the responses have records of their own
	if err := bill.Idle(a.call.ctx); err != nil {
		a.call.h.site.Logger.Error("a reservation is not released", zap.Stringer("id", a.x.Record.ID), zap.Error(err))
	}
	defer func() {
		a.x.Bill = bill
		a.x.Release()
	}()
	end := storage.Complete
	conn, buffered, err := http.NewResponseController(a.client.w).Hijack()
	if err != nil {
		a.call.h.site.Logger.Error("a WebSocket cannot be opened", zap.Stringer("id", a.x.Record.ID), zap.Error(err))
		end = storage.Failed
	} else {
		open := &realtime{a: a, bill: bill, hold: sync.OnceValue(func() error { return bill.Hold(a.call.ctx) })}
		open.Passage = &socket.Passage{
			Conn: conn, Upstream: upstream, Reads: bill.Bounded() || a.shares() || open.limited(),
			Unloaded: a.call.h.unloaded, Refused: a.call.recheck,
		}
		a.x.RequestOf(a.call.exchange)
		open.Tunnel = tunnel.Open(a.x, resp.Header, tunnel.Options{
			MaxBody: int64(a.call.h.MaxBody), RequestModel: a.x.Record.RequestModel, Logger: a.call.h.site.Logger,
			FromClient: open.fromClient, Begin: open.begin,
		})
		// At the connection's end, buffered cancels the context of the request, as the end of
		// the process does: only what it has read already is taken from it.
		passed := open.Pass(a.call.ctx, io.MultiReader(io.LimitReader(buffered, int64(buffered.Reader.Buffered())), conn))
		a.x.Record.RequestBytes, a.x.Record.ResponseBytes = passed.Received, passed.Sent
		if passed.Reason != nil {
			a.x.Record.ErrorType, a.x.Refusal = passed.Reason.Type, passed.Reason
		}
	}
	a.x.Commit(end)
	a.x.End(end)
	return routing.Answered, nil
}

// fromClient ends the WebSocket if the account is shared and the message asks for what the
// account keeps, or if the message names a model that the key may not call. A message that cannot be
// read may do so, and ends the WebSocket, too.
func (s *realtime) fromClient(message []byte, cut bool) {
	shared, limited := s.a.shares(), s.limited()
	switch {
	case !shared && !limited:
		return
	case cut:
		s.Stop(plugins.Invalid("", "A message of the WebSocket is too long to be read, and it may name what the key may not use at %s.", s.a.target.Account.Label))
		return
	}
	gjson.ParseBytes(message).ForEach(func(name, of gjson.Result) bool {
		if name.Str != "session" && name.Str != "response" {
			return true
		}
		of.ForEach(func(key, prompt gjson.Result) bool { // a field that stands twice may be read twice
			if shared && key.Str == "prompt" && prompt.IsObject() {
				s.Stop(plugins.Unsupported("prompt", "'prompt' names what %s keeps: the account is shared with others.", s.a.target.Account.Label))
			}
			return true
		})
		if limited {
			s.checkModels(of, modelDepth)
		}
		return true
	})
}

// limited reports whether the caller may call some models alone.
func (s *realtime) limited() bool {
	return !s.a.call.key.MayCall(s.a.target.Account.Label, "")
}

// modelDepth is how many objects stand around a model in a session: audio, input, transcription.
const modelDepth = 3

// checkModels ends the WebSocket if a session or a response names a model that the key may not call:
// another one for itself, or for the transcription of what is heard
// (https://github.com/BerriAI/litellm/pull/40010).
func (s *realtime) checkModels(v gjson.Result, depth int) {
	v.ForEach(func(key, value gjson.Result) bool {
		switch key.Str {
		case "audio", "input", "transcription", "input_audio_transcription":
			if depth > 0 {
				s.checkModels(value, depth-1)
			}
		case "model":
			own := value.Str == s.a.x.Record.RequestModel || value.Str == s.a.target.Model
			if !own && value.Type != gjson.Null && !s.a.call.key.MayCall(s.a.target.Account.Label, value.String()) {
				s.Stop(access.NotAllowed(value.String()))
			}
		}
		return true
	})
}

// begin sets aside what a response may cost, and for the first one the socket's part, too: a
// socket without a response holds nothing. If the credits are insufficient for a response, the
// socket's part pays for it, once, and it is the last one.
func (s *realtime) begin(x *recording.Exchange) (end func(storage.EndState), refused *plugins.Error) {
	if refused := s.a.call.recheck(s.a.call.ctx); refused != nil {
		s.Stop(refused)
		return nil, refused
	}
	if err := s.hold(); err != nil {
		s.Stop(apierror.Of(err))
		return nil, apierror.Of(err)
	}
	paid := &attempt{candidate: s.a.candidate, lane: s.a.lane, x: x, nested: true}
	err := paid.admit()
	if err != nil {
		if !s.spent.CompareAndSwap(false, true) {
			s.Stop(apierror.Of(err))
			return nil, apierror.Of(err)
		}
		x.Bill = s.bill
	}
	s.Begin()
	return func(end storage.EndState) {
		x.Commit(end)
		paid.settle(end, false)
		x.Release()
		if err != nil {
			s.Stop(apierror.Of(err))
		}
		s.End()
	}, nil
}
