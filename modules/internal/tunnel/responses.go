package tunnel

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/tidwall/gjson"

	"github.com/weirhq/weir/modules/internal/capture"
	"github.com/weirhq/weir/modules/internal/control"
	"github.com/weirhq/weir/modules/internal/recording"
	"github.com/weirhq/weir/plugins"
	"github.com/weirhq/weir/plugins/observe"
	"github.com/weirhq/weir/storage"
)

// MaxInFlight bounds how many responses of a tunnel the client has requested and the
// server has not begun, how many the server has begun and not ended, and how many
// transcriptions are under way. If there is one more response, the oldest one ends.
const MaxInFlight = 100

// responses are the responses of a tunnel. They share its two streams of events, and responses
// finds out which event belongs to which response.
type responses struct {
	options Options
	x       *recording.Exchange
	twoWay  *observe.TwoWay

	// mu guards requested, input and requestModel, which both directions use. Nobody holds it
	// while a record is written.
	mu           sync.Mutex
	requested    []*response // not begun by the server, the oldest first
	input        messages    // from the client since the last response
	requestModel string      // the model that the client's session names

	// Only the goroutine of the server's direction uses the fields below.
	inProgress  []*response
	lastEnded   string               // id of the response that ended last
	model       string               // the model that the server's session names
	transcriber string               // the model that transcribes the input audio
	committedAt map[string]time.Time // when the input audio of an item was complete, by the item's id
}

// response is one call in a tunnel.
type response struct {
	exchange *recording.Exchange
	end      func(storage.EndState) // from Options.Begin; may be nil
	id       string                 // "" until the server names it
	eventID  string                 // the client's id of the event that requested it
	observer plugins.Observer
	// lastError is an error event that ends the response if the server sends nothing after it.
	lastError []byte

	request, answer messages
}

// messages are messages of one side, in the form in which a record keeps them.
type messages struct {
	capture.Copy
	bytes int64
	cut   bool // at least one message came without its end
}

// fromClient reads a message from the client. cut is true if the message lacks its end.
func (rs *responses) fromClient(message []byte, cut bool) {
	if rs.options.FromClient != nil {
		rs.options.FromClient(message, cut)
	}
	reader := observe.NewRequestReader(rs.x.Record.Dialect)
	reader.Write(message)
	request := reader.Request()
	kind, _ := observe.Envelope(message)
	if kind == "" || kind != rs.twoWay.Create {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		if rs.twoWay.Conversation {
			rs.keepRequest(kind, message, cut)
		}
		rs.requestModel = cmp.Or(request.Model, rs.requestModel)
		return
	}

	r, refused := rs.newResponse(rs.x.Record.Dialect, time.Now())
	r.eventID = gjson.GetBytes(message, "event_id").Str
	r.exchange.Account = rs.x.Account
	rs.mu.Lock()
	rs.keepRequest(kind, message, cut)
	rs.takeRequest(r)
	rs.mu.Unlock()
	r.exchange.Record.RequestModel = cmp.Or(request.Model, r.exchange.Record.RequestModel)
	control.ReadUser(&r.exchange.Record, request.User)
	r.exchange.Join(reader.Outline(), uuid.Nil)
	r.exchange.Kept.Media(&r.exchange.Record, request.Media)
	if refused != nil {
		r.exchange.Record.Status, r.exchange.Record.ErrorType, r.exchange.Refusal = plugins.Known(int64(refused.Status)), refused.Type, refused
		rs.finish(r, storage.Complete)
		return
	}
	var oldest *response
	rs.mu.Lock()
	if len(rs.requested) == MaxInFlight {
		oldest, rs.requested = rs.requested[0], rs.requested[1:]
	}
	rs.requested = append(rs.requested, r)
	rs.mu.Unlock()
	if oldest != nil {
		rs.finish(oldest, storage.Failed)
	}
}

// keepRequest keeps a message from the client as input of the next response. In a
// conversation the input is a JSON array of all messages.
// The caller holds mu.
func (rs *responses) keepRequest(kind string, message []byte, cut bool) {
	m := &rs.input
	m.bytes += int64(len(message))
	m.cut = m.cut || cut
	if rs.x.Record.RequestOmitted || rs.twoWay.IsMedia(kind, message) {
		return
	}
	before := ","
	if m.Bytes() == nil {
		m.Keep(rs.options.MaxBody, int64(len(message)))
		before = "["
	}
	if rs.twoWay.Conversation {
		m.Write([]byte(before))
	}
	m.Write(message)
}

func (rs *responses) newResponse(d plugins.Dialect, started time.Time) (r *response, refused *plugins.Error) {
	x := rs.x
	r = &response{exchange: x.Part(started), observer: observe.NewEvents(d, x.Record.Provider)}
	r.exchange.Record.Dialect = d
	r.exchange.Answer = r.observer
	r.exchange.Record.Stream = true
	r.exchange.RequestOf(x)
	if x.Record.RequestOmitted && len(rs.twoWay.Speaks) > 0 { // its events have what the user says
		r.exchange.Kept.Omit(&r.exchange.Record, false, true)
	}
	if !r.exchange.Record.ResponseOmitted {
		r.answer.Keep(rs.options.MaxBody, 0)
	}
	if rs.options.Begin != nil {
		r.end, refused = rs.options.Begin(r.exchange)
	}
	return r, refused
}

// takeRequest makes the client's messages since the last response the request of r.
// The caller holds mu.
func (rs *responses) takeRequest(r *response) {
	r.exchange.Record.RequestModel = cmp.Or(rs.requestModel, observe.PathModel(r.exchange.Record.Dialect, r.exchange.Record.Path))
	r.request, rs.input = rs.input, messages{}
	if rs.twoWay.Conversation && r.request.Bytes() != nil {
		r.request.Write([]byte{']'})
	}
}

// fromServer reads a message from the server. If the message ends a response, the record is
// written before the client can see the message.
func (rs *responses) fromServer(message []byte, cut bool) {
	kind, id := observe.Envelope(message)
	if of, ok := rs.twoWay.Delegated[kind]; ok {
		rs.readDelegated(of, message)
	}
	if id != "" && id == rs.lastEnded { // an event after the end of its response
		return
	}
	r := rs.find(kind, id, message)
	if r == nil {
		if rs.twoWay.Conversation {
			rs.readSessionEvent(kind, message)
		}
		return
	}
	r.exchange.Record.Status = plugins.Known(http.StatusOK)
	r.answer.bytes += int64(len(message))
	r.answer.cut = r.answer.cut || cut
	if !rs.twoWay.IsMedia(kind, message) {
		r.keepAnswer(message)
	}
	failed := kind == "error"
	r.lastError = nil
	if failed && len(rs.twoWay.Speaks) > 0 { // of a command of the client, if the response goes on
		r.lastError = bytes.Clone(message)
		return
	}
	r.read(kind, message)
	if failed || r.observer.Info().Phase == plugins.Ended || rs.twoWay.IsEnd(message) {
		rs.inProgress = slices.DeleteFunc(rs.inProgress, func(b *response) bool { return b == r })
		rs.lastEnded = r.id
		rs.finish(r, storage.Complete)
	}
}

// read lets the record learn from an event. An error may state the HTTP status.
func (r *response) read(kind string, event []byte) {
	r.observer.Write(event)
	r.exchange.MarkFirstToken()
	if status := gjson.GetBytes(event, "status").Int(); kind == "error" && 400 <= status && status <= 599 {
		r.exchange.Record.Status = plugins.Known(status)
	}
}

// keepAnswer keeps an event as a line of JSON. Line ends in the event become spaces.
func (r *response) keepAnswer(message []byte) {
	if bytes.ContainsAny(message, "\r\n") {
		message = bytes.ReplaceAll(bytes.ReplaceAll(message, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
	}
	r.answer.Write(message)
	r.answer.Write([]byte("\n"))
}

// find returns the response of an event from the server, or nil if the event belongs to no
// response. The first event of a requested response begins the oldest request, because servers
// answer in order.
func (rs *responses) find(kind, id string, message []byte) *response {
	for _, r := range rs.inProgress {
		if id != "" && (r.id == id || r.id == "") {
			r.id = id
			return r
		}
	}
	switch {
	case id != "":
		if r := rs.takeRequested(""); r != nil {
			return rs.begin(r, id)
		}
		return rs.beginUnrequested(id)
	case len(rs.twoWay.Speaks) > 0:
		if len(rs.inProgress) > 0 {
			return rs.inProgress[0]
		}
		if rs.twoWay.IsSpeech(message) {
			return rs.beginUnrequested("")
		}
		return nil
	case kind == "error":
		eventID := gjson.GetBytes(message, "error.event_id").Str
		if r := rs.takeRequested(eventID); r != nil || eventID != "" {
			return r
		}
	}
	switch {
	case rs.twoWay.Conversation:
		return nil
	case len(rs.inProgress) > 0:
		return rs.inProgress[0]
	}
	if r := rs.takeRequested(""); r != nil {
		return rs.begin(r, "")
	}
	return nil
}

// beginUnrequested begins a response that the client did not request by an event: the server
// answers the input so far.
func (rs *responses) beginUnrequested(id string) *response {
	r, _ := rs.newResponse(rs.x.Record.Dialect, time.Now())
	rs.mu.Lock()
	rs.takeRequest(r)
	rs.mu.Unlock()
	return rs.begin(r, id)
}

// takeRequested removes and returns the requested response with an event id, or the oldest one
// if the id is "". It returns nil if there is none.
func (rs *responses) takeRequested(eventID string) *response {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for i, r := range rs.requested {
		if eventID == "" || r.eventID == eventID {
			rs.requested = slices.Delete(rs.requested, i, i+1)
			return r
		}
	}
	return nil
}

func (rs *responses) begin(r *response, id string) *response {
	r.id, r.exchange.TargetModel = id, rs.model
	if len(rs.inProgress) == MaxInFlight {
		rs.finish(rs.inProgress[0], storage.UpstreamAborted)
		rs.inProgress = slices.Delete(rs.inProgress, 0, 1)
	}
	rs.inProgress = append(rs.inProgress, r)
	return r
}

// readSessionEvent reads an event of a conversation that belongs to no response: the models of
// the session, and the usage of transcriptions, each of which gets a record of its own.
func (rs *responses) readSessionEvent(kind string, message []byte) {
	observer := observe.NewEvents(rs.x.Record.Dialect, rs.x.Record.Provider)
	observer.Write(message)
	info := observer.Info()
	rs.model = cmp.Or(info.Model, rs.model)
	for _, place := range rs.twoWay.Transcriber {
		rs.transcriber = cmp.Or(gjson.GetBytes(message, place).Str, rs.transcriber)
	}
	item := gjson.GetBytes(message, "item_id").Str
	if kind == rs.twoWay.Heard && len(rs.committedAt) < MaxInFlight {
		if rs.committedAt == nil {
			rs.committedAt = make(map[string]time.Time)
		}
		rs.committedAt[item] = time.Now()
	}
	if info.Usage == (plugins.Usage{}) {
		return
	}
	started, timed := rs.committedAt[item]
	if !timed {
		started = time.Now()
	}
	delete(rs.committedAt, item)
	r := rs.newPart(rs.x.Record.Dialect, started, rs.transcriber, message)
	if !r.exchange.Record.RequestOmitted { // the transcript is the user's speech
		r.keepAnswer(message)
	}
	rs.finish(r, storage.Complete)
}

// readDelegated reads an event of a call that the provider makes for the session. The last event of
// the call, or its answer, has the usage: it gets a record of its own.
func (rs *responses) readDelegated(of observe.Delegated, message []byte) {
	event := []byte(gjson.GetBytes(message, of.Path).Raw)
	observer := observe.NewEvents(of.Dialect, rs.x.Record.Provider)
	observer.Write(event)
	info := *observer.Info()
	if info.Usage == (plugins.Usage{}) {
		return
	}
	r := rs.newPart(of.Dialect, time.Now(), info.Model, event)
	if !r.exchange.Record.ResponseOmitted {
		r.keepAnswer(event)
	}
	rs.finish(r, storage.Complete)
}

// newPart returns the response that an event reports which has all of its usage, of a model that the
// session names.
func (rs *responses) newPart(d plugins.Dialect, started time.Time, model string, event []byte) *response {
	r, _ := rs.newResponse(d, started) // no refusal: the provider has already done the work
	r.exchange.Record.Stream = false
	r.exchange.Kept.Inputs(&r.exchange.Record, nil)
	r.exchange.Record.RequestModel, r.exchange.TargetModel, r.exchange.Record.Status = model, model, plugins.Known(http.StatusOK)
	r.observer.Write(event)
	r.answer.bytes = int64(len(event))
	return r
}

// abort ends all responses that have not ended, after the WebSocket has. failure is why, nil if nothing says so.
func (rs *responses) abort(end storage.EndState, failure *plugins.Error) {
	fail := func(r *response) {
		if failure != nil {
			r.exchange.Record.ErrorType, r.exchange.Refusal = failure.Type, failure
		}
	}
	rs.mu.Lock()
	requested := rs.requested
	rs.requested = nil
	rs.mu.Unlock()
	for _, r := range requested {
		state := storage.Failed
		r.exchange.Record.Status = plugins.Known(http.StatusBadGateway)
		if end == storage.ClientAborted {
			state = end
			r.exchange.Record.Status = plugins.Known(storage.StatusClientLeft)
		}
		fail(r)
		rs.finish(r, state)
	}
	for _, r := range rs.inProgress {
		if r.lastError != nil && end == storage.UpstreamAborted {
			r.read("error", r.lastError)
		} else {
			fail(r)
		}
		rs.finish(r, end)
	}
	rs.inProgress = nil
}

func (rs *responses) finish(r *response, end storage.EndState) {
	r.observer.Close()
	record := &r.exchange.Record
	record.RequestBytes, record.ResponseBytes = r.request.bytes, r.answer.bytes
	r.exchange.Kept.Request(record, storedBody("application/json", &r.request), rs.options.MaxBody, r.request.Truncated() || r.request.cut)
	r.exchange.Kept.Response(record, storedBody("application/x-ndjson", &r.answer), rs.options.MaxBody, r.answer.Truncated() || r.answer.cut)
	if r.end != nil {
		r.end(end)
	}
	r.exchange.End(end)
	r.exchange.Close()
	r.exchange.Kept = storage.Kept{}
	r.request.Free()
	r.answer.Free()
}

func storedBody(contentType string, m *messages) storage.Body {
	data := m.Bytes()
	if data == nil {
		return storage.Body{}
	}
	return storage.Body{Type: contentType, Data: data}
}
