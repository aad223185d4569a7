// Package socket speaks with clients over WebSockets: it makes the calls of Responses that
// come in messages, and passes the bytes of Realtime.
//
// Its tests are websocket_test.go and realtime_test.go of llmgateway.
package socket

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
	"github.com/weirhq/weir/modules/llmgateway/history"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/translate"
)

// maxOpen is how long a WebSocket may stay open, as at OpenAI.
const maxOpen = time.Hour

// Options are what a WebSocket of Responses needs of the gateway.
type Options struct {
	// Intake reads the messages.
	Intake intake.Reader
	// Unloaded is closed when the configuration is another.
	Unloaded <-chan struct{}
	// Omits: the content of no call may be kept.
	Omits bool
	// Store returns what the caller has.
	Store func() (*history.Store, error)
	// OpenCompactions puts messages in the place of the caller's compactions in a body.
	OpenCompactions func(body []byte) ([]byte, error)
	// Call answers a call as over HTTP.
	Call func(w http.ResponseWriter, r *http.Request) error
}

// responses is a WebSocket of the Responses API
// (https://developers.openai.com/docs/guides/websocket-mode). Each message of the client
// is a call, and each event of the call's answer is a message. Calls are made one after the other.
type responses struct {
	Options
	ctx      context.Context // ends when the client leaves
	r        *http.Request   // opened the WebSocket; each call has its headers
	conn     net.Conn
	writing  sync.Mutex
	messages chan intake.Body
	last     unstoredResponse
}

// unstoredResponse is the latest response of a WebSocket, if no store keeps it.
type unstoredResponse struct {
	id    string
	items []string // of the conversation up to its end
	size  int64    // of the items, in bytes; it counts as copies of bodies do
}

// ServeResponses opens a WebSocket of Responses for an admitted caller, and answers what
// comes over it.
func ServeResponses(w http.ResponseWriter, r *http.Request, o Options) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	conn, buffered, _, err := ws.UpgradeHTTP(r, w)
	if err != nil {
		return // it is answered
	}
	defer conn.Close()
	s := &responses{Options: o, ctx: ctx, r: r, conn: conn, messages: make(chan intake.Body)}
	defer s.forget()
	go func() {
		defer cancel()
		s.read(buffered.Reader)
	}()
	s.serve()
}

// serve answers calls until the client leaves, or the socket has to close.
func (s *responses) serve() {
	limit := time.NewTimer(maxOpen)
	defer limit.Stop()
	for {
		select {
		case message := <-s.messages:
			s.answer(message)
		case <-s.ctx.Done():
			return
		case <-s.Unloaded: // keys and providers may be others now
			s.close(ws.StatusGoingAway, "the configuration has changed: connect again")
			return
		case <-limit.C:
			s.fail(plugins.Invalid("", "The WebSocket was open for 60 minutes: connect again.").WithCode("websocket_connection_limit_reached"))
			s.close(ws.StatusNormalClosure, "")
			return
		}
	}
}

// read hands on the messages of the client until it leaves.
func (s *responses) read(from io.Reader) {
	in := s.Intake.Socket(s.conn, from, frames{s})
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
func (s *responses) answer(message intake.Body) {
	if err := s.call(message); err != nil {
		s.forget()
		s.fail(apierror.Of(err))
	}
}

func (s *responses) call(received intake.Body) error {
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
	body, items, err := s.continued(&received, body, warmsUp || s.Omits || event.Get("store").Type == gjson.False)
	if err != nil {
		return err
	}
	if warmsUp {
		return s.warmUp(body, items)
	}
	var response []byte // nil if the call failed
	w := &Events{Refuse: s.refuse, Event: func(data []byte) error {
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
	if err := s.Call(w, r); err != nil {
		return err
	}
	s.forget()
	if items != nil && gjson.GetBytes(response, "id").Str != "" {
		if history.EndsWithTrigger(body) {
			items = nil // the compaction stands for them
		}
		s.remember(response, append(items, history.Output(response)...))
	}
	return nil
}

// maxUnstored bounds the conversation that a socket remembers, in bytes.
const maxUnstored = 8 << 20

// remember keeps the conversation up to the end of a response that no store keeps.
func (s *responses) remember(response []byte, items []string) {
	s.forget()
	size := int64(0)
	for _, item := range items {
		size += int64(len(item))
	}
	if size <= maxUnstored && capture.Reserve(size) {
		s.last = unstoredResponse{gjson.GetBytes(response, "id").Str, items, size}
	}
}

// forget lets go of the conversation that the socket remembers.
func (s *responses) forget() {
	capture.Return(s.last.size)
	s.last = unstoredResponse{}
}

// continued returns the body with the conversation that this socket alone has, and the
// items of the conversation if remembers says that it must have them afterwards.
func (s *responses) continued(received *intake.Body, body []byte, remembers bool) (request []byte, items []string, err error) {
	previous, newItems := gjson.GetBytes(body, "previous_response_id").Str, history.InputOf(body)
	if previous != "" && previous == s.last.id {
		if err := received.Grow(s.ctx, s.last.size); err != nil {
			return nil, nil, err
		}
		items = slices.Concat(s.last.items, newItems)
		if body, err = sjson.DeleteBytes(body, "previous_response_id"); err == nil {
			body, err = history.SetItems(body, "input", items)
		}
		return body, items, err
	}
	if !remembers || history.ConversationOf(body) != "" {
		return body, nil, nil
	}
	if previous != "" {
		store, err := s.Store()
		if err != nil {
			return nil, nil, err
		}
		items, err = store.History(s.ctx, previous, int(s.Intake.Limit), received.Grow)
		if errors.Is(err, history.ErrNotFound) { // the call tells so, or its provider has it
			return body, nil, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return body, append(items, newItems...), nil
}

// warmUp answers a call that shall generate nothing: its response can be continued.
func (s *responses) warmUp(body []byte, items []string) error {
	body, err := s.OpenCompactions(body)
	if err != nil {
		return err
	}
	request, err := translate.ParseRequest(body)
	if err != nil {
		return err
	}
	var events bytes.Buffer
	assembler := translate.NewAssembler(request, &events, translate.Options{ID: history.IDs(uuid.Must(uuid.NewV7()))})
	assembler.Finish(translate.ReasonStop)
	rest := assembler.End()
	s.remember(assembler.Response(), items)
	w := &Events{Event: s.event}
	_, err = w.Write(append(events.Bytes(), rest...))
	return err
}

// request returns the request over HTTP that has the same effect as a call, without a body.
func (s *responses) request(previous string) *http.Request {
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
	r.Header.Set("Content-Type", "application/json")
	return r
}

// continuedResponse is the key of what Continued returns.
type continuedResponse struct{}

// Continued returns the id of the response that a call of a WebSocket continues, if the input
// of the call has the conversation already, else "".
func Continued(ctx context.Context) string {
	id, _ := ctx.Value(continuedResponse{}).(string)
	return id
}

// event sends an event, unless the client has left. A client may leave once it has the last
// event.
func (s *responses) event(data []byte) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	s.send(data)
	return nil
}

// refuse sends the error that a call has answered.
func (s *responses) refuse(status int, answer []byte) error {
	event, err := json.Marshal(map[string]any{"type": "error", "status": status, "error": json.RawMessage(gjson.GetBytes(answer, "error").Raw)})
	if err != nil {
		return err
	}
	return s.event(event)
}

func (s *responses) fail(e *plugins.Error) {
	_ = s.refuse(e.Status, apierror.Body(plugins.Responses, e)) // the reader sees that the client is gone
}

func (s *responses) send(message []byte) {
	_, _ = frames{s}.Write(ws.MustCompileFrame(ws.NewTextFrame(message))) // the reader sees that the client is gone
}

func (s *responses) close(code ws.StatusCode, reason string) {
	_, _ = frames{s}.Write(ws.MustCompileFrame(ws.NewCloseFrame(ws.NewCloseFrameBody(code, reason))))
}

// frames writes whole frames, which come from the calls and from the reader.
type frames struct{ *responses }

func (s frames) Write(frame []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.conn.Write(frame)
}
