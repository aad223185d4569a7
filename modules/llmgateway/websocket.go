package llmgateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/google/uuid"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/weirhq/weir/modules/internal/apierror"
	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/intake"
	"github.com/weirhq/weir/modules/llmgateway/stored"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
	"github.com/weirhq/weir/storage"
)

// maxSocket is how long a WebSocket may stay open, as at OpenAI.
const maxSocket = time.Hour

// socket is a WebSocket of the Responses API
// (https://developers.openai.com/docs/guides/websocket-mode). Each of its messages is a
// call, whose events are messages in return. Calls are made one after the other.
type socket struct {
	h        *Handler
	r        *http.Request // that opened it
	conn     net.Conn
	writing  sync.Mutex
	messages chan intake.Body
	ctx      context.Context // ends when the client leaves
	caller   storage.Record  // its organisation and user
	omits    bool            // content, of all its calls
	last     unstored
}

// unstored is the latest response of a socket, if no store keeps it.
type unstored struct {
	id    string
	items []string // of the conversation up to its end
	size  int64    // of the items, in bytes, which are copies as those of bodies are
}

// serveSocket answers what comes over a WebSocket: of Responses, or of Realtime.
func (h *Handler) serveSocket(w http.ResponseWriter, r *http.Request, at *match) error {
	if at.dialect == plugins.Realtime {
		return h.serveRealtime(w, r, at)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	s := &socket{h: h, r: r, messages: make(chan intake.Body), ctx: ctx}
	opened := request{h: h, w: w, r: r.Clone(ctx), ctx: ctx, dialect: at.dialect} // each call needs the headers, too
	if e := opened.admit(&s.caller); e != nil {
		return apierror.Write(w, at.dialect, e)
	}
	s.omits = opened.controls.OmitHeader != ""
	conn, buffered, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return nil // it is answered
	}
	defer conn.Close()
	s.conn = conn
	defer s.forget()
	go func() {
		defer cancel()
		s.read(buffered.Reader)
	}()
	s.serve()
	return nil
}

// serve answers calls until the client leaves, or the socket has to close.
func (s *socket) serve() {
	limit := time.NewTimer(maxSocket)
	defer limit.Stop()
	for {
		select {
		case message := <-s.messages:
			s.answer(message)
		case <-s.ctx.Done():
			return
		case <-s.h.unloaded: // keys and providers may be others now
			s.close(ws.StatusGoingAway, "the configuration has changed: connect again")
			return
		case <-limit.C:
			s.fail(&plugins.Error{
				Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "websocket_connection_limit_reached",
				Message: "The WebSocket was open for 60 minutes: connect again.",
			})
			s.close(ws.StatusNormalClosure, "")
			return
		}
	}
}

// read hands on the messages of the client until it leaves.
func (s *socket) read(from io.Reader) {
	in := s.h.intake(maxRequest).Socket(s.conn, from, socketFrames{s})
	for {
		message, err := in.Next(s.ctx)
		if closing, ours := errors.AsType[*intake.ClosingError](err); ours {
			s.close(closing.Code, closing.Reason)
		}
		if err != nil {
			return
		}
		select {
		case s.messages <- message:
		case <-s.ctx.Done():
			message.Release()
			return
		}
	}
}

// answer makes the call that a message asks for.
func (s *socket) answer(message intake.Body) {
	if err := s.call(message); err != nil {
		s.forget()
		s.fail(asError(err))
	}
}

func (s *socket) call(received intake.Body) error {
	defer received.Release()
	message := received.Bytes
	if err := received.CheckJSON(s.ctx, message); err != nil {
		return err
	}
	event := gjson.Parse(plugins.View(message))
	switch {
	case !plugins.ValidJSON(message) || !event.IsObject():
		return plugins.Invalid("", "The message is not valid JSON: an object is expected.")
	case event.Get("type").Str != "response.create":
		return translate.InvalidValue("type", event.Get("type").Str, []string{"response.create"})
	case event.Get("background").Type == gjson.True:
		return plugins.Unsupported("background", "A WebSocket has no calls in the background.")
	}
	body, err := sjson.SetBytes(message, "stream", true)
	for _, field := range []string{"type", "generate", "background"} {
		if err == nil {
			body, err = sjson.DeleteBytes(body, field)
		}
	}
	if err != nil {
		return err
	}
	warmsUp := event.Get("generate").Type == gjson.False
	body, items, err := s.continued(&received, body, warmsUp || s.omits || event.Get("store").Type == gjson.False)
	if err != nil {
		return err
	}
	if warmsUp {
		return s.warmUp(body, items)
	}
	var response []byte // nil if the call failed
	w := &eventWriter{header: make(http.Header), refuse: s.refuse, event: func(data []byte) error {
		if kind := gjson.GetBytes(data, "type").Str; kind == "response.completed" || kind == "response.incomplete" {
			response = []byte(gjson.GetBytes(data, "response").Raw)
		}
		return s.event(data)
	}}
	r := s.request(event.Get("previous_response_id").Str)
	received.Bytes = body
	release, err := received.Give(r)
	if err != nil {
		return err
	}
	defer release()
	if err := s.h.serveCall(w, r, &match{served: byPath["/v1/responses"].methods[http.MethodPost]}); err != nil {
		return err
	}
	s.forget()
	if items != nil && gjson.GetBytes(response, "id").Str != "" {
		if stored.EndsWithTrigger(body) {
			items = nil // the compaction stands for them
		}
		s.remember(response, append(items, stored.Output(response)...))
	}
	return nil
}

// maxUnstored bounds the conversation that a socket remembers, in bytes.
const maxUnstored = 8 << 20

// remember keeps the conversation up to the end of a response that no store keeps.
func (s *socket) remember(response []byte, items []string) {
	s.forget()
	size := int64(0)
	for _, item := range items {
		size += int64(len(item))
	}
	if size <= maxUnstored && capture.Reserve(size) {
		s.last = unstored{gjson.GetBytes(response, "id").Str, items, size}
	}
}

// forget lets go of the conversation that the socket remembers.
func (s *socket) forget() {
	capture.Return(s.last.size)
	s.last = unstored{}
}

// continued returns the body with the conversation that this socket alone has, and the
// items of the conversation if remembers says that it must have them afterwards.
func (s *socket) continued(received *intake.Body, body []byte, remembers bool) (whole []byte, items []string, err error) {
	previous, own := gjson.GetBytes(body, "previous_response_id").Str, stored.InputOf(body)
	if previous != "" && previous == s.last.id {
		if err := received.Grow(s.ctx, s.last.size); err != nil {
			return nil, nil, err
		}
		items = slices.Concat(s.last.items, own)
		if body, err = sjson.DeleteBytes(body, "previous_response_id"); err == nil {
			body, err = sjson.SetRawBytes(body, "input", []byte("["+strings.Join(items, ",")+"]"))
		}
		return body, items, err
	}
	if !remembers || conversationID(body) != "" {
		return body, nil, nil
	}
	if previous != "" {
		store, err := s.h.stored(s.caller.Org, s.caller.UserID)
		if err != nil {
			return nil, nil, err
		}
		items, err = store.History(s.ctx, previous, maxRequest, received.Grow)
		if errors.Is(err, stored.ErrNotFound) { // the call tells so, or its provider has it
			return body, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return body, append(items, own...), nil
}

// warmUp answers a call that shall generate nothing: its response can be continued.
func (s *socket) warmUp(body []byte, items []string) error {
	body, err := s.h.openCompactions(s.caller.Org, body)
	if err != nil {
		return err
	}
	request, err := translate.ParseRequest(body)
	if err != nil {
		return err
	}
	var events bytes.Buffer
	assembler := translate.NewAssembler(request, &events, translate.Options{ID: stored.IDs(uuid.Must(uuid.NewV7()))})
	assembler.Finish(translate.ReasonStop)
	rest := assembler.End()
	s.remember(assembler.Response(), items)
	w := &eventWriter{event: s.event}
	_, err = w.Write(append(events.Bytes(), rest...))
	return err
}

// request is the request of a call over HTTP with the same effect, without its body.
func (s *socket) request(previous string) *http.Request {
	ctx := s.ctx
	if previous != "" && previous == s.last.id {
		ctx = context.WithValue(ctx, continuedResponse{}, previous)
	}
	r := s.r.Clone(ctx)
	r.Method = http.MethodPost
	for name := range r.Header {
		if name == "Connection" || name == "Upgrade" || strings.HasPrefix(name, "Sec-Websocket-") {
			r.Header.Del(name)
		}
	}
	r.Header.Set("Content-Type", jsonType)
	return r
}

// continuedResponse is the key of the id of the response that a call continues, in
// the context of one whose input has the conversation already.
type continuedResponse struct{}

// event sends an event, unless the client has left. A client may leave once it has the last
// event.
func (s *socket) event(data []byte) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.send(data)
	return nil
}

// refuse sends the error that a call has answered.
func (s *socket) refuse(status int, answer []byte) error {
	event, err := json.Marshal(map[string]any{"type": "error", "status": status, "error": json.RawMessage(gjson.GetBytes(answer, "error").Raw)})
	if err != nil {
		return err
	}
	return s.event(event)
}

// fail sends an error of the socket.
func (s *socket) fail(e *plugins.Error) {
	body, err := json.Marshal(apierror.Body(plugins.Responses, e))
	if err != nil { // strings always marshal
		return
	}
	_ = s.refuse(e.Status, body) // the reader sees that the client is gone
}

// send sends a message.
func (s *socket) send(message []byte) {
	_, _ = socketFrames{s}.Write(ws.MustCompileFrame(ws.NewTextFrame(message))) // the reader sees that the client is gone
}

func (s *socket) close(code ws.StatusCode, reason string) {
	_, _ = socketFrames{s}.Write(ws.MustCompileFrame(ws.NewCloseFrame(ws.NewCloseFrameBody(code, reason))))
}

// socketFrames writes whole frames, which come from the calls and from the reader.
type socketFrames struct{ *socket }

func (s socketFrames) Write(frame []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.conn.Write(frame)
}
