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

// MaxInFlight bounds the responses of a tunnel that were asked for, those that have
// begun, and the transcriptions. The oldest is given up for one more.
const MaxInFlight = 100

// responses are those of a tunnel: it says which event belongs to which.
type responses struct {
	options Options
	x       *recording.Exchange
	how     *observe.TwoWay

	mu           sync.Mutex // of what both directions use, never held while a record is written
	asked        []*response
	since        messages // of the client since the last response
	requestModel string   // that the client's session names

	// The server's direction alone uses these.
	begun       []*response
	ended       string // the id of the last one that ended
	model       string // that the server's session names
	transcriber string
	heard       map[string]time.Time // when an item to transcribe was complete, by its id
}

// response is one call in a tunnel.
type response struct {
	*recording.Exchange
	end      func(storage.EndState) // of Options.Begin, or nil
	id       string
	event    string // the client's id of the event that asked for it
	observer plugins.Observer

	request, answer messages
}

// messages are some of one side, as they are kept.
type messages struct {
	capture.Copy
	bytes int64
	cut   bool // one of them was cut before it came here
}

// fromClient takes a message of the client.
func (rs *responses) fromClient(message []byte, cut bool) {
	if rs.options.FromClient != nil {
		rs.options.FromClient(message, cut)
	}
	reader := observe.NewRequestReader(rs.x.Record.Dialect)
	reader.Write(message)
	asked := reader.Request()
	kind, _ := observe.Envelope(message)
	if kind == "" || kind != rs.how.Create {
		rs.mu.Lock()
		defer rs.mu.Unlock()
		if rs.how.Conversation {
			rs.keepRequest(kind, message, cut)
		}
		rs.requestModel = cmp.Or(asked.Model, rs.requestModel)
		return
	}

	r, refused := rs.newResponse(time.Now())
	r.event = gjson.GetBytes(message, "event_id").Str
	r.Account = rs.x.Account
	rs.mu.Lock()
	rs.keepRequest(kind, message, cut)
	rs.takeRequest(r)
	rs.mu.Unlock()
	r.Record.RequestModel = cmp.Or(asked.Model, r.Record.RequestModel)
	control.ReadUser(&r.Record, asked.User)
	r.Join(reader.Outline(), uuid.Nil)
	r.Kept.Media(&r.Record, asked.Media)
	if refused != nil {
		r.Record.Status, r.Record.ErrorType, r.Refusal = plugins.Known(int64(refused.Status)), refused.Type, refused
		rs.finish(r, storage.Complete)
		return
	}
	var oldest *response
	rs.mu.Lock()
	if len(rs.asked) == MaxInFlight {
		oldest, rs.asked = rs.asked[0], rs.asked[1:]
	}
	rs.asked = append(rs.asked, r)
	rs.mu.Unlock()
	if oldest != nil {
		rs.finish(oldest, storage.Failed)
	}
}

// keepRequest keeps a message of the client for the next response: of a conversation
// all of them, as a JSON array.
func (rs *responses) keepRequest(kind string, message []byte, cut bool) {
	m := &rs.since
	m.bytes += int64(len(message))
	m.cut = m.cut || cut
	if rs.x.Record.RequestOmitted || rs.how.IsMedia(kind, message) {
		return
	}
	before := ","
	if m.Bytes() == nil {
		m.Keep(rs.options.MaxBody, int64(len(message)))
		before = "["
	}
	if rs.how.Conversation {
		m.Write([]byte(before))
	}
	m.Write(message)
}

func (rs *responses) newResponse(started time.Time) (r *response, refused *plugins.Error) {
	x := rs.x
	r = &response{Exchange: x.Part(started), observer: observe.NewEvents(x.Record.Dialect, x.Record.Provider)}
	r.Answer = r.observer
	r.Record.Stream = true
	r.RequestOf(x)
	if !r.Record.ResponseOmitted {
		r.answer.Keep(rs.options.MaxBody, 0)
	}
	if rs.options.Begin != nil {
		r.end, refused = rs.options.Begin(r.Exchange)
	}
	return r, refused
}

// takeRequest makes what the client has said since the last response the request of r.
// The caller holds the lock.
func (rs *responses) takeRequest(r *response) {
	r.Record.RequestModel = cmp.Or(rs.requestModel, observe.PathModel(r.Record.Dialect, r.Record.Path))
	r.request, rs.since = rs.since, messages{}
	if rs.how.Conversation && r.request.Bytes() != nil {
		r.request.Write([]byte{']'})
	}
}

// fromServer takes a message of the server. What ends a response is recorded before
// the client can see it.
func (rs *responses) fromServer(message []byte, cut bool) {
	kind, id := observe.Envelope(message)
	if id != "" && id == rs.ended { // an event behind the last one
		return
	}
	r := rs.find(kind, id, message)
	if r == nil {
		if rs.how.Conversation {
			rs.session(kind, message)
		}
		return
	}
	r.Record.Status = plugins.Known(http.StatusOK)
	r.observer.Write(message)
	r.MarkFirstToken()
	r.answer.bytes += int64(len(message))
	r.answer.cut = r.answer.cut || cut
	if !rs.how.IsMedia(kind, message) {
		r.keepAnswer(message)
	}
	failed := kind == "error"
	if status := gjson.GetBytes(message, "status").Int(); failed && 400 <= status && status <= 599 {
		r.Record.Status = plugins.Known(status)
	}
	if failed || r.observer.Info().Phase == plugins.Ended || rs.how.IsEnd(message) {
		rs.begun = slices.DeleteFunc(rs.begun, func(b *response) bool { return b == r })
		rs.ended = r.id
		rs.finish(r, storage.Complete)
	}
}

// keepAnswer keeps an event as a line. Line ends within its JSON are white space.
func (r *response) keepAnswer(message []byte) {
	if bytes.ContainsAny(message, "\r\n") {
		message = bytes.ReplaceAll(bytes.ReplaceAll(message, []byte("\n"), []byte(" ")), []byte("\r"), []byte(" "))
	}
	r.answer.Write(message)
	r.answer.Write([]byte("\n"))
}

// find returns the response that an event of the server belongs to, nil if it belongs
// to none. The first event of a response that the client asked for begins the one that
// waits longest: servers answer in order.
func (rs *responses) find(kind, id string, message []byte) *response {
	for _, r := range rs.begun {
		if id != "" && (r.id == id || r.id == "") {
			r.id = id
			return r
		}
	}
	switch {
	case id != "":
		if r := rs.takeAsked(""); r != nil {
			return rs.begin(r, id)
		}
		return rs.beginUnasked(id)
	case len(rs.how.Speaks) > 0:
		if len(rs.begun) > 0 {
			return rs.begun[0]
		}
		if rs.how.IsSpeech(message) {
			return rs.beginUnasked("")
		}
		return nil
	case kind == "error":
		event := gjson.GetBytes(message, "error.event_id").Str
		if r := rs.takeAsked(event); r != nil || event != "" {
			return r
		}
	}
	switch {
	case rs.how.Conversation:
		return nil
	case len(rs.begun) > 0:
		return rs.begun[0]
	}
	if r := rs.takeAsked(""); r != nil {
		return rs.begin(r, "")
	}
	return nil
}

// beginUnasked begins a response that the server has begun unasked, or for what the client said.
func (rs *responses) beginUnasked(id string) *response {
	r, _ := rs.newResponse(time.Now())
	rs.mu.Lock()
	rs.takeRequest(r)
	rs.mu.Unlock()
	return rs.begin(r, id)
}

// takeAsked takes the oldest response that was asked for, by that event unless it is
// "". It is nil if there is none.
func (rs *responses) takeAsked(event string) *response {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for i, r := range rs.asked {
		if event == "" || r.event == event {
			rs.asked = slices.Delete(rs.asked, i, i+1)
			return r
		}
	}
	return nil
}

func (rs *responses) begin(r *response, id string) *response {
	r.id, r.TargetModel = id, rs.model
	rs.begun = append(rs.begun, r)
	return r
}

// session takes an event of a conversation that belongs to no response.
func (rs *responses) session(kind string, message []byte) {
	observer := observe.NewEvents(rs.x.Record.Dialect, rs.x.Record.Provider)
	observer.Write(message)
	info := observer.Info()
	rs.model = cmp.Or(info.Model, rs.model)
	for _, place := range rs.how.Transcriber {
		rs.transcriber = cmp.Or(gjson.GetBytes(message, place).Str, rs.transcriber)
	}
	item := gjson.GetBytes(message, "item_id").Str
	if kind == rs.how.Heard && len(rs.heard) < MaxInFlight {
		if rs.heard == nil {
			rs.heard = make(map[string]time.Time)
		}
		rs.heard[item] = time.Now()
	}
	if info.Usage == (plugins.Usage{}) {
		return
	}
	started, timed := rs.heard[item]
	if !timed {
		started = time.Now()
	}
	delete(rs.heard, item)
	r, _ := rs.newResponse(started) // which the server has ended
	r.Record.Stream = false
	r.Kept.Inputs(&r.Record, nil)
	r.Record.RequestModel, r.TargetModel, r.Record.Status = rs.transcriber, rs.transcriber, plugins.Known(http.StatusOK)
	r.observer.Write(message)
	if !r.Record.RequestOmitted { // it is what the user said
		r.keepAnswer(message)
	}
	r.answer.bytes = int64(len(message))
	rs.finish(r, storage.Complete)
}

// abort ends all responses that have not ended.
func (rs *responses) abort(end storage.EndState, errorType string) {
	rs.mu.Lock()
	asked := rs.asked
	rs.asked = nil
	rs.mu.Unlock()
	for _, r := range asked {
		state := storage.Failed
		r.Record.Status = plugins.Known(http.StatusBadGateway)
		if end == storage.ClientAborted {
			state = end
			r.Record.Status = plugins.Known(recording.StatusClientLeft)
		}
		r.Record.ErrorType = errorType
		rs.finish(r, state)
	}
	for _, r := range rs.begun {
		r.Record.ErrorType = errorType
		rs.finish(r, end)
	}
	rs.begun = nil
}

func (rs *responses) finish(r *response, end storage.EndState) {
	r.observer.Close()
	record := &r.Record
	record.RequestBytes, record.ResponseBytes = r.request.bytes, r.answer.bytes
	r.Kept.Request(record, kept("application/json", &r.request), rs.options.MaxBody, r.request.Truncated() || r.request.cut)
	r.Kept.Response(record, kept("application/x-ndjson", &r.answer), rs.options.MaxBody, r.answer.Truncated() || r.answer.cut)
	if r.end != nil {
		r.end(end)
	}
	r.End(end)
	r.Close()
	r.Kept = storage.Kept{}
	r.request.Free()
	r.answer.Free()
}

func kept(contentType string, m *messages) storage.Body {
	data := m.Bytes()
	if data == nil {
		return storage.Body{}
	}
	return storage.Body{Type: contentType, Data: data}
}
